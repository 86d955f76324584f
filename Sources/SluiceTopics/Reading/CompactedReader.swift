import SluiceLog
import SluiceWire

/// Reads the newest record of each key of a compact topic, up to the offset from which the log is read.
///
/// ```
///   offset ──►  start                      end
///               | newest of each key        | every record, from the log
/// ```
///
/// The end is the head of the log when the reader began, or when the log had dropped the records that were to be read next. A record that a newer one
/// replaces before it is read isn't missed: the newer one follows, from here or from the log.
@usableFromInline package struct CompactedReader: Sendable {
  /// About the most bytes that are copied under the lock of the records.
  private static let portion = 64 << 10

  private let records: CompactedRecords
  /// The offset from which on the log is read.
  @usableFromInline package private(set) var end: UInt64
  /// Deletions from that offset on are returned as well, because the receiver may have the deleted records.
  private var deletionsFrom: UInt64
  /// The time of the last mark returned since the start; nil if the next record needs one.
  private var time: Int64?
  private let headroom: Int

  /// - Parameters:
  ///   - deletionsFrom: `end` for a receiver that has no record of the topic yet.
  ///   - headroom: the bytes that the receiver needs before each run of copies, at least 16.
  package init(_ records: CompactedRecords, before end: UInt64, deletionsFrom: UInt64, headroom: Int) {
    self.records = records
    self.end = end
    self.deletionsFrom = deletionsFrom
    self.headroom = headroom
  }

  /// Starts again, up to another end, because the log has dropped records that were to be read next.
  mutating func restart(before end: UInt64) {
    self.end = end
    time = nil
  }

  /// Copies the next records that match `matcher`, and moves `offset` behind the records that were examined.
  ///
  /// - Parameters:
  ///   - offset: before the end.
  ///   - demand: the most records. Without demand, records are skipped up to the next one that matches.
  ///   - bytes: about the most bytes to examine. At least one record is examined, however long.
  package mutating func next(
    at offset: inout UInt64, demand: UInt64, bytes: Int, largest: Int, _ matcher: RecordMatcher?
  ) -> RecordSource.Step {
    let portion = min(bytes, Self.portion)
    var copies = CopiedRecords(
      records: demand, bytes: portion, largest: largest, headroom: headroom, time: time)
    var passed = 0
    let walk = records.walk(from: offset, before: end, deletionsFrom: deletionsFrom) { record in
      // The walk stops before a record, never at one that was skipped: the next call would examine that one again.
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
      // The topic may still have records before them, so the offset stays.
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
