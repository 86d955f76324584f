/// What a producer publishes: a payload, and if need be a key and headers.
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
  /// What the record is about. None and an empty one are different things. At most 65,535 bytes.
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

  /// The same content, to be published again.
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
