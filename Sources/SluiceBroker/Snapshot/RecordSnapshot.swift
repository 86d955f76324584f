import SluiceWire

/// A copy of a topic's record.
public struct RecordSnapshot: Hashable, Sendable {
  public struct Header: Hashable, Sendable {
    public var name: [UInt8]
    public var value: [UInt8]

    public init(name: [UInt8], value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  public var offset: UInt64
  /// Milliseconds since 1970.
  public var time: Int64
  /// Nil for a record without a key.
  public var key: [UInt8]?
  public var headers: [Header]
  public var payload: [UInt8]

  public init(offset: UInt64, time: Int64, key: [UInt8]?, headers: [Header], payload: [UInt8]) {
    self.offset = offset
    self.time = time
    self.key = key
    self.headers = headers
    self.payload = payload
  }
}

extension RecordSnapshot {
  /// A copy of a record; nil for a malformed one, which a log never contains.
  init?(_ record: BatchIterator.Record, at offset: UInt64) {
    guard record.isAttributed else {
      unsafe self.init(offset: offset, time: record.time, key: nil, headers: [], payload: Array(record.body))
      return
    }
    guard let attributes = unsafe try? RecordAttributes(record.body) else { return nil }
    var headers: [Header] = []
    unsafe attributes.forEachHeader { name, value in
      unsafe headers.append(Header(name: Array(name), value: Array(value)))
    }
    unsafe self.init(
      offset: offset, time: record.time, key: attributes.key.map { unsafe Array($0) }, headers: headers,
      payload: Array(attributes.payload))
  }
}
