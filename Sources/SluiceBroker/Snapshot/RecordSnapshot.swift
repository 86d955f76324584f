import SluiceLog
import SluiceTopics
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
  /// Nil for a record without one.
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
  /// A copy of a record; nil for a malformed one, which a log never has.
  fileprivate init?(_ record: BatchIterator.Record, at offset: UInt64) {
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

extension TopicLog {
  /// The approximate number of bytes that one step reads.
  private static var portion: Int { 256 << 10 }

  /// Copies of the newest records that are in memory, oldest first. From any thread.
  ///
  /// - Parameters:
  ///   - count: the most records.
  ///   - bytes: the most bytes of their bodies in all.
  func newestRecords(_ count: Int, bytes: Int) -> [RecordSnapshot] {
    let end = head
    let first = max(oldestOffset, end - min(UInt64(max(count, 0)), end))
    var cursor = LogCursor(unplacedAt: first)
    var found: [(offset: UInt64, record: BatchIterator.Record)] = []
    // These keep the memory of the records found.
    var segments: [Segment] = []
    var time: Int64 = 0
    while cursor.nextOffset < end {
      let step = next(&cursor, records: end - cursor.nextOffset, bytes: Self.portion, hint: segments.last)
      // Records that were dropped meanwhile are no longer among the newest.
      if case .lagged = step { continue }
      guard case .slice(let slice) = step else { break }
      if let mark = cursor.pendingTimeMark.take() { time = mark }
      if segments.last !== slice.segment { segments.append(slice.segment) }
      var iterator = unsafe BatchIterator(slice.bytes, time: time)
      var offset = slice.firstOffset
      while let record = try? iterator.next() {
        found.append((offset, record))
        offset += 1
      }
      time = iterator.time
    }
    var left = bytes
    let fitting = found.reversed().prefix { found in
      unsafe left -= found.record.body.count
      return left >= 0
    }
    return withExtendedLifetime(segments) {
      fitting.reversed().compactMap { RecordSnapshot($0.record, at: $0.offset) }
    }
  }
}
