/// Puts records into a batch, ready to travel.
///
/// A value type over one array: reuse it with ``removeAll()`` and it doesn't allocate again.
public struct BatchBuilder: Sendable {
  /// The batch.
  public private(set) var bytes: [UInt8] = []
  /// Records in the batch.
  public private(set) var count: UInt32 = 0

  public init() {}

  public var isEmpty: Bool { count == 0 }

  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }

  /// Adds a record without key and headers.
  ///
  /// - Precondition: the payload has at most ``RecordLayout/maximumBody`` bytes.
  public mutating func append(_ payload: UnsafeRawBufferPointer) {
    precondition(payload.count <= RecordLayout.maximumBody, "the payload is longer than a record can be")
    let word = RecordLayout.word(.plain, length: payload.count)
    unsafe withUnsafeBytes(of: word.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    unsafe bytes.append(contentsOf: payload)
    count += 1
  }

  /// Adds a record with a key, headers, or both.
  ///
  /// - Throws: ``ErrorCode/recordTooLarge`` when the key or a header's name is longer than 65,535 bytes, there are more than
  ///   65,535 headers, or the body would be longer than ``RecordLayout/maximumBody``.
  public mutating func append(
    key: UnsafeRawBufferPointer?, headers: [(name: [UInt8], value: [UInt8])], payload: UnsafeRawBufferPointer
  ) throws(WireError) {
    let length = try unsafe Self.bodyLength(key: key?.count, headers: headers, payload: payload.count)
    guard unsafe key != nil || !headers.isEmpty else { return unsafe append(payload) }
    var writer = ByteWriter(bytes)
    bytes = []
    writer.integer(RecordLayout.word(.attributed, length: length))
    unsafe writer.integer(
      (key == nil ? 0 : RecordAttributes.Flag.key) | (headers.isEmpty ? 0 : RecordAttributes.Flag.headers))
    if let key = unsafe key {
      writer.integer(UInt16(key.count))
      unsafe writer.raw(key)
    }
    if !headers.isEmpty {
      writer.integer(UInt16(headers.count))
      for header in headers {
        writer.integer(UInt16(header.name.count))
        writer.bytes.append(contentsOf: header.name)
        writer.integer(UInt32(header.value.count))
        writer.bytes.append(contentsOf: header.value)
      }
    }
    unsafe writer.raw(payload)
    bytes = writer.bytes
    count += 1
  }

  /// The length of a record's body, to which the limit on records applies.
  ///
  /// - Throws: as ``append(key:headers:payload:)``.
  public static func bodyLength(
    key: Int?, headers: [(name: [UInt8], value: [UInt8])], payload: Int
  ) throws(WireError) -> Int {
    var length = payload
    if key != nil || !headers.isEmpty { length += 1 }
    if let key {
      guard key <= Int(UInt16.max) else {
        throw WireError(.recordTooLarge, "the record's key has \(key) bytes; the limit is \(UInt16.max)")
      }
      length += 2 + key
    }
    if !headers.isEmpty {
      guard headers.count <= Int(UInt16.max) else {
        throw WireError(
          .recordTooLarge, "the record has \(headers.count) headers; the limit is \(UInt16.max)")
      }
      length += 2
      for header in headers {
        guard header.name.count <= Int(UInt16.max) else {
          throw WireError(
            .recordTooLarge, "a header's name has \(header.name.count) bytes; the limit is \(UInt16.max)")
        }
        length += 6 + header.name.count + header.value.count
      }
    }
    guard length <= RecordLayout.maximumBody else {
      throw WireError(
        .recordTooLarge, "the record has \(length) bytes; the limit is \(RecordLayout.maximumBody)")
    }
    return length
  }
}
