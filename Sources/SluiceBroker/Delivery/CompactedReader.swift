import SluiceLog
import SluiceWire

/// What a subscription to a topic that keeps the newest record of each key has, besides its cursor: how far it reads those, and
/// what it was told.
///
/// ```
///   offset ──►  start                      end
///               | newest of each key        | every record, from the log
/// ```
///
/// The end is the head of the log when the subscription came, or when the log had dropped what it was to read next. What a newer record
/// replaces before it is read isn't missed: the newer one comes, here or from the log.
struct CompactedReader {
  let records: CompactedRecords
  /// Up to there the newest records are read, from there on the log.
  fileprivate(set) var end: UInt64
  /// Deletions from there on are told as well: the subscriber may have what was deleted.
  fileprivate var deletionsFrom: UInt64
  /// Of the last mark told while these are read; nil when the next record needs one.
  fileprivate var time: Int64?

  /// - Parameter deletionsFrom: `end` for somebody who has no record of the topic yet.
  init(_ records: CompactedRecords, before end: UInt64, deletionsFrom: UInt64) {
    self.records = records
    self.end = end
    self.deletionsFrom = deletionsFrom
  }
}

extension Subscription {
  /// About the most bytes that are copied under the lock of the records.
  private static let newestPortion = 64 << 10

  /// Whether it reads the newest of each key at the moment.
  var readsNewest: Bool { newest.map { cursor.nextOffset < $0.end } ?? false }

  /// The offset from which on it can't do without the log; all ones while it doesn't follow the head yet.
  var needsLogFrom: UInt64 { readsNewest && !isLive ? .max : cursor.nextOffset }

  /// The log has dropped records that were to be read next: of those, and of all up to the head, the newest are read instead, if the topic
  /// keeps them. The cursor takes the step back.
  func readNewest(insteadOf missed: UInt64) -> Bool {
    guard newest != nil else { return false }
    cursor = LogCursor(unplacedAt: cursor.nextOffset - missed)
    newest?.end = epoch.log.head
    newest?.time = nil
    return true
  }

  /// Puts the newest records up to the end of those into `writes`, if there are any to be read.
  ///
  /// - Parameter matcher: tells which records are wanted; nil for all.
  /// - Returns: nil when the log has its turn.
  @inline(__always)
  func produceNewest(into writes: WriteBatch, _ budget: inout Int, _ matcher: RecordMatcher? = nil)
    -> Outcome?
  {
    if newest == nil { return nil }
    return produceNewest(writes, &budget, matcher)
  }

  @inline(never)
  private func produceNewest(_ writes: WriteBatch, _ budget: inout Int, _ matcher: RecordMatcher?) -> Outcome?
  {
    guard var reading = newest.take() else { return nil }
    defer { newest = reading }
    while cursor.nextOffset < reading.end {
      guard credit.available > 0 else {
        if let matcher {
          if let outcome = passUnwanted(reading, matcher, writes, &budget) { return outcome }
          continue
        }
        // What was replaced needs no demand, and doesn't keep the marker waiting.
        let walk = reading.records.walk(
          from: cursor.nextOffset, before: reading.end, deletionsFrom: reading.deletionsFrom
        ) { _ in false }
        guard walk == .finished else { return .starved }
        cursor = LogCursor(unplacedAt: reading.end)
        return nil
      }
      guard budget > 0, writes.hasRoom else { return .more }
      let portion = min(budget, Self.newestPortion)
      var passed = 0
      var batches = CopiedBatches(
        stream: stream, records: credit.available, bytes: portion, largest: connection.largestBatch,
        time: reading.time)
      let walk = reading.records.walk(
        from: cursor.nextOffset, before: reading.end, deletionsFrom: reading.deletionsFrom
      ) { record in
        guard let matcher, unsafe !matcher.matches(item: record.item) else { return batches.take(record) }
        unsafe passed += record.item.count
        return passed < portion
      }
      writes.passed(passed)
      budget -= passed
      if let copied = batches.finish() {
        writes.append(copied)
        spend(batches.count, bytes: batches.recordBytes, through: reading.end)
        unsafe budget -= copied.bytes.count
        reading.time = batches.time
      }
      switch walk {
      case .finished:
        cursor = LogCursor(unplacedAt: reading.end)
      case .stopped(let offset):
        cursor = LogCursor(unplacedAt: offset)
        if batches.tooLong { return tooLongForClient(offset, writes) }
      case .recordsMissed(let offset):
        let missed = offset - cursor.nextOffset
        cursor = LogCursor(unplacedAt: offset)
        guard tellLag(missed, writes) else { return .ended }
      case .deletionsMissed(let offset):
        // Records before them may be there all the same, so the cursor stays.
        let missed = offset - max(cursor.nextOffset, reading.deletionsFrom)
        reading.deletionsFrom = offset
        guard tellLag(missed, writes) else { return .ended }
      }
    }
    return nil
  }

  /// Without demand: goes on to the next record that is wanted.
  ///
  /// - Returns: nil when there is none, or the walk has to look again.
  private func passUnwanted(
    _ reading: CompactedReader, _ matcher: RecordMatcher, _ writes: WriteBatch, _ budget: inout Int
  ) -> Outcome? {
    guard budget > 0 else { return .more }
    var passed = 0
    var isWanted = false
    let portion = min(budget, Self.newestPortion)
    let walk = reading.records.walk(
      from: cursor.nextOffset, before: reading.end, deletionsFrom: reading.deletionsFrom
    ) { record in
      isWanted = unsafe matcher.matches(item: record.item)
      unsafe passed += record.item.count
      return !isWanted && passed < portion
    }
    writes.passed(passed)
    budget -= passed
    switch walk {
    case .finished: cursor = LogCursor(unplacedAt: reading.end)
    case .stopped(let offset): cursor = LogCursor(unplacedAt: offset)
    case .recordsMissed, .deletionsMissed: return .starved
    }
    return isWanted ? .starved : nil
  }
}
