import SluiceLog
import SluiceWire

/// Reads the newest record of each key of a compact topic, up to where the log takes over.
///
/// ```
///   offset ──►  start                      end
///               | newest of each key        | every record, from the log
/// ```
///
/// The end is the head of the log when the reader began, or when the log had dropped what was to be read next. What a newer record
/// replaces before it is read isn't missed: the newer one comes, here or from the log.
@usableFromInline package struct CompactedReader: Sendable {
  /// About the most bytes that are copied under the lock of the records.
  private static let portion = 64 << 10

  private let records: CompactedRecords
  /// The offset from which on the log is read.
  @usableFromInline package private(set) var end: UInt64
  /// Deletions from that offset on are handed out as well: the receiver may have what was deleted.
  private var deletionsFrom: UInt64
  /// The time of the last mark handed out since the beginning; nil when the next record needs one.
  private var time: Int64?
  private let headroom: Int

  /// - Parameters:
  ///   - deletionsFrom: `end` for a receiver that has no record of the topic yet.
  ///   - headroom: the bytes that the receiver wants ahead of each run of copies, at least 16.
  package init(_ records: CompactedRecords, before end: UInt64, deletionsFrom: UInt64, headroom: Int) {
    self.records = records
    self.end = end
    self.deletionsFrom = deletionsFrom
    self.headroom = headroom
  }

  /// Begins anew, up to another end: the log has dropped records that were to be read next.
  mutating func restart(before end: UInt64) {
    self.end = end
    time = nil
  }

  /// Copies the next records that `matcher` lets through, and moves `offset` behind what was looked at.
  ///
  /// - Parameters:
  ///   - offset: before the end.
  ///   - demand: the most records. With none, everything is passed by up to the next record that is wanted.
  ///   - bytes: about the most bytes to look at. At least one record is looked at, however long.
  package mutating func next(
    at offset: inout UInt64, demand: UInt64, bytes: Int, largest: Int, _ matcher: RecordMatcher?
  ) -> RecordSource.Step {
    let portion = min(bytes, Self.portion)
    var copies = CopiedRecords(
      records: demand, bytes: portion, largest: largest, headroom: headroom, time: time)
    var passed = 0
    let walk = records.walk(from: offset, before: end, deletionsFrom: deletionsFrom) { record in
      // The walk stops ahead of a record, never at one that was passed by: the next call would look at that one again.
      guard passed == 0 || passed < portion else { return false }
      guard let matcher, unsafe !matcher.matches(item: record.item) else { return copies.take(record) }
      unsafe passed += record.item.count
      return true
    }
    switch walk {
    case .finished: offset = end
    case .stopped(let next): offset = next
    case .recordsMissed where demand == 0, .deletionsMissed where demand == 0: return .demandExhausted
    case .recordsMissed(let next):
      defer { offset = next }
      return .lagged(missed: next - offset)
    case .deletionsMissed(let next):
      // Records before them may be there all the same, so the offset stays.
      defer { deletionsFrom = next }
      return .lagged(missed: next - max(offset, deletionsFrom))
    }
    if copies.count > 0 {
      copies.finish()
      time = copies.time
      return .copies(copies, passed: passed)
    }
    if case .stopped = walk, passed == 0 { return .demandExhausted }
    return .passed(bytes: passed)
  }
}
