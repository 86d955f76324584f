import SluiceLog

/// The guarantees of a log, as simple as possible: an array of all records ever.
struct LogModel {
  var retention: Retention
  var firstOffset: UInt64
  var records: [TestRecord] = []
  private var clock = ModelClock()

  /// Everything before this was removed.
  var removedThrough: UInt64

  /// No reader that begins gets anything before this.
  private(set) var trimmedTo: UInt64 = 0

  /// Late subscribers get nothing before this, whatever the limits are now.
  private(set) var floor: UInt64 = 0

  init(retention: Retention, firstOffset: UInt64) {
    self.retention = retention
    self.firstOffset = firstOffset
    removedThrough = firstOffset
  }

  var head: UInt64 { firstOffset + UInt64(records.count) }

  subscript(offset: UInt64) -> TestRecord { records[Int(offset - firstOffset)] }

  mutating func append(_ batch: [TestRecord], at milliseconds: Int64) {
    tell(milliseconds)
    let time = clock.append(at: milliseconds, count: batch.count)
    records += batch.map { TestRecord(body: $0.body, isAttributed: $0.isAttributed, time: time) }
  }

  mutating func tell(_ milliseconds: Int64) {
    if clock.isSetBack(to: milliseconds) { look(now: nil) }
    clock.tell(milliseconds)
  }

  /// The first record that a late subscriber gets. Records that were once too old stay dropped.
  func firstKept(now: Int64?) -> UInt64 {
    var later = clock
    if let now { later.tell(now) }
    return max(firstKept(by: clock), firstKept(by: later))
  }

  /// Going back from the newest for as long as every limit allows.
  private func firstKept(by clock: ModelClock) -> UInt64 {
    var first = head
    var bytes: UInt64 = 0
    while first > max(removedThrough, floor) {
      let record = self[first - 1]
      bytes += UInt64(record.itemSize)
      if let limit = retention.records, head - first + 1 > limit { break }
      if let limit = retention.bytes, bytes > limit { break }
      if let limit = retention.ageMilliseconds,
        clock.now - min(record.time, clock.caps[Int(first - 1 - firstOffset)]) > max(limit, 0)
      {
        break
      }
      first -= 1
    }
    return first
  }

  /// The log returned its floor, or raised it, at that time: it never goes back.
  mutating func look(now: Int64?) { floor = max(floor, firstKept(now: now)) }

  /// An operator drops what is before that offset.
  mutating func trim(to offset: UInt64) {
    look(now: nil)
    trimmedTo = max(trimmedTo, min(offset, head))
    floor = max(floor, trimmedTo)
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

/// The guarantees of ``RecordClock``, as simple as possible: the latest time at which each record can have been appended.
struct ModelClock {
  var now: Int64 = .min
  /// The time of the newest record, or of the clock when it was set back since.
  var time: Int64?
  /// By record.
  var caps: [Int64] = []

  func isSetBack(to milliseconds: Int64) -> Bool { now > .min && milliseconds < now - 1_000 }

  mutating func tell(_ milliseconds: Int64) {
    guard isSetBack(to: milliseconds) else { return now = max(now, milliseconds) }
    now = milliseconds
    guard let time, milliseconds < time - 1_000 else { return }
    self.time = milliseconds
    for index in caps.indices { caps[index] = min(caps[index], milliseconds) }
  }

  /// Returns the records' time.
  mutating func append(at milliseconds: Int64, count: Int) -> Int64 {
    tell(milliseconds)
    let time = max(time ?? milliseconds, milliseconds)
    self.time = time
    caps += Array(repeating: .max, count: count)
    return time
  }
}
