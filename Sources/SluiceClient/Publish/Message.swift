import ReactiveCore
import SluiceWire

/// The content that a producer publishes: a payload, and optionally a key and headers.
///
/// ```swift
/// subject.send("just text")
/// subject.send(Message("{\"total\": 12}", key: "order-7", headers: [.init("type", "application/json")]))
/// ```
public struct Message: Hashable, Sendable {
  /// A name and a value that travel with a record.
  public struct Header: Hashable, Sendable {
    /// At most 65,535 bytes of UTF-8.
    public var name: String
    public var value: [UInt8]

    public init(_ name: String, _ value: [UInt8]) {
      self.name = name
      self.value = value
    }

    public init(_ name: String, _ value: String) {
      self.init(name, [UInt8](value.utf8))
    }

    /// The value as text; bytes that aren't UTF-8 become U+FFFD.
    public var string: String { String(decoding: value, as: UTF8.self) }
  }

  public var payload: [UInt8]
  /// The record's key; nil differs from an empty one. At most 65,535 bytes.
  public var key: [UInt8]?
  public var headers: [Header]

  public init(_ payload: [UInt8], key: [UInt8]? = nil, headers: [Header] = []) {
    self.payload = payload
    self.key = key
    self.headers = headers
  }

  public init(_ payload: String, key: String? = nil, headers: [Header] = []) {
    self.init([UInt8](payload.utf8), key: key.map { [UInt8]($0.utf8) }, headers: headers)
  }

  /// A message with a record's content, to publish it again.
  public init(_ record: TopicRecord) {
    self.init(record.payload, key: record.key, headers: record.headers)
  }

  /// The payload as text; bytes that aren't UTF-8 become U+FFFD.
  public var string: String { String(decoding: payload, as: UTF8.self) }
}

extension Message: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) {
    self.init(text)
  }
}

extension Message {
  /// The length of the record's body.
  ///
  /// - Throws: ``ClientError/Code/recordTooLarge`` if the protocol can't encode it.
  func bodyLength() throws(ClientError) -> Int {
    guard isAttributed else { return payload.count }
    var length = 1 + payload.count
    if let key {
      guard key.count <= Int(UInt16.max) else {
        throw ClientError(.recordTooLarge, "the key has \(key.count) bytes; the limit is \(UInt16.max)")
      }
      length += 2 + key.count
    }
    if !headers.isEmpty {
      guard headers.count <= Int(UInt16.max) else {
        throw ClientError(.recordTooLarge, "there are \(headers.count) headers; the limit is \(UInt16.max)")
      }
      length += 2
      for header in headers {
        let name = header.name.utf8.count
        guard name <= Int(UInt16.max) else {
          throw ClientError(.recordTooLarge, "a header's name has \(name) bytes; the limit is \(UInt16.max)")
        }
        length += 6 + name + header.value.count
      }
    }
    return length
  }

  private var isAttributed: Bool { key != nil || !headers.isEmpty }

  /// Appends the record as an item of a batch.
  ///
  /// - Precondition: ``bodyLength()`` doesn't throw.
  func append(to bytes: inout [UInt8]) {
    guard isAttributed else {
      return unsafe payload.withUnsafeBytes { unsafe Self.append($0, to: &bytes) }
    }
    let length = (try? bodyLength()) ?? 0
    func integer<I: FixedWidthInteger & BitwiseCopyable>(_ value: I) {
      unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
    integer(RecordLayout.word(.attributed, length: length))
    bytes.append(
      (key == nil ? 0 : RecordAttributes.Flag.key) | (headers.isEmpty ? 0 : RecordAttributes.Flag.headers))
    if let key {
      integer(UInt16(key.count))
      bytes.append(contentsOf: key)
    }
    if !headers.isEmpty {
      integer(UInt16(headers.count))
      for header in headers {
        integer(UInt16(header.name.utf8.count))
        bytes.append(contentsOf: header.name.utf8)
        integer(UInt32(header.value.count))
        bytes.append(contentsOf: header.value)
      }
    }
    bytes.append(contentsOf: payload)
  }

  /// Appends a record without key and headers as an item of a batch.
  static func append(_ payload: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    let word = RecordLayout.word(.plain, length: payload.count)
    unsafe withUnsafeBytes(of: word.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    unsafe bytes.append(contentsOf: payload)
  }
}

extension Message {
  /// A message whose payload is an encoded value.
  ///
  /// - Throws: ``ClientError/Code/encodeFailed``.
  public init<Value: Encodable, Coder: TopLevelEncoder>(
    encoding value: Value, encoder: Coder, key: String? = nil, headers: [Header] = []
  ) throws(ClientError) where Coder.Output == [UInt8] {
    let payload: [UInt8]
    do {
      payload = try encoder.encode(value)
    } catch {
      throw ClientError(unencodable: value, error)
    }
    self.init(payload, key: key.map { [UInt8]($0.utf8) }, headers: headers)
  }
}

extension ClientError {
  /// An encoder's error, as a failure to publish.
  package init<Value>(unencodable value: Value, _ error: any Error) {
    let reason =
      if case .invalidValue(_, let context) = error as? EncodingError {
        context.debugDescription
      } else {
        "\(error)"
      }
    self.init(.encodeFailed, "a value of type \(Value.self) can't be encoded to be published: \(reason)")
  }
}
