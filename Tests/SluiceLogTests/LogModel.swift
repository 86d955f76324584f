import SluiceLog

/// What a log promises, said as naively as possible: an array of all records ever.
struct LogModel {
  var retention: Retention
  var firstOffset: UInt64
  var records: [TestRecord] = []
  var latestTime: Int64 = .min

  /// Everything before this was removed.
  var removedThrough: UInt64

  /// Late subscribers get nothing before this.
  var trimmedTo: UInt64 = 0

  init(retention: Retention, firstOffset: UInt64) {
    self.retention = retention
    self.firstOffset = firstOffset
    removedThrough = firstOffset
  }

  var head: UInt64 { firstOffset + UInt64(records.count) }

  subscript(offset: UInt64) -> TestRecord { records[Int(offset - firstOffset)] }

  mutating func append(_ batch: [TestRecord], at milliseconds: Int64) {
    let time = max(records.last?.time ?? .min, milliseconds)
    latestTime = max(latestTime, milliseconds)
    records += batch.map { TestRecord(body: $0.body, isAttributed: $0.isAttributed, time: time) }
  }

  /// The first record that a late subscriber gets: going back from the newest for as long as every limit allows.
  func firstKept(now: Int64?) -> UInt64 {
    let now = max(now ?? .min, latestTime)
    var first = head
    var bytes: UInt64 = 0
    while first > max(removedThrough, min(trimmedTo, head)) {
      let record = self[first - 1]
      bytes += UInt64(record.itemSize)
      if let limit = retention.records, head - first + 1 > limit { break }
      if let limit = retention.bytes, bytes > limit { break }
      if let limit = retention.ageMilliseconds, now - record.time > max(limit, 0) { break }
      first -= 1
    }
    return first
  }

  /// Where a late subscriber begins.
  func start(_ position: StartPosition, now: Int64?) -> UInt64 {
    let first = firstKept(now: now)
    switch position {
    case .replay, .earliest: return first
    case .new: return head
    case .last(let count): return count > head - first ? first : head - count
    case .offset(let offset): return max(offset, first)
    case .time(let time): return (first..<head).first { self[$0].time >= time } ?? head
    }
  }

  /// Bytes of the records from an offset to the head.
  func bytes(from offset: UInt64) -> Int {
    (offset..<head).reduce(0) { $0 + self[$1].itemSize }
  }
}
