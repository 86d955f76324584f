import SluiceIO

/// A message to store if the last message of its subject is the expected one.
struct ControlWrite: Hashable, Sendable {
  /// Counts all writes and reads of the process; it is also in the records of nodes and shards.
  var number: UInt64
  var record: ControlRecord
  /// The sequence of the subject's last message; 0 for none.
  var expected: UInt64
}

/// The result of a write.
enum WriteOutcome: Hashable, Sendable {
  case stored(UInt64)
  /// The last message wasn't the expected one: nothing was stored.
  case refused
  /// It wasn't stored, and may be retried.
  case notStored
  /// It may have been stored, or may be stored later.
  case unknown
}

/// The result of reading a subject's last message from the stream's leader.
enum ReadOutcome: Hashable, Sendable {
  case found(ControlRecord, UInt64)
  case none
  case failed
}

/// The requests for one subject: one at a time, and a read after each write that was refused or whose result is unknown.
///
/// A write whose result is unknown may still be stored after the read. That is harmless: its expectation fails as soon as another message is stored.
struct SubjectQueue: Hashable, Sendable {
  private(set) var pending: UInt64?
  private(set) var needsRead = false
  private var notBefore: MonotonicTime?

  /// Whether a write may be sent.
  func isReady(at now: MonotonicTime) -> Bool {
    pending == nil && !needsRead && notBefore.map { $0 <= now } ?? true
  }

  /// Whether a message is pending, or the result of one is unknown.
  var isBusy: Bool { pending != nil || needsRead }

  /// Whether no request is pending or waits.
  var isIdle: Bool { pending == nil && !needsRead && notBefore == nil }

  func wantsRead(at now: MonotonicTime) -> Bool {
    pending == nil && needsRead && notBefore.map { $0 <= now } ?? true
  }

  mutating func sent(_ number: UInt64) { pending = number }

  mutating func finished(_ outcome: WriteOutcome, at now: MonotonicTime, retry: Duration) {
    pending = nil
    notBefore = nil
    switch outcome {
    case .stored: break
    case .refused: needsRead = true
    case .notStored: notBefore = now + retry
    case .unknown:
      needsRead = true
      notBefore = now + retry
    }
  }

  mutating func read(_ outcome: ReadOutcome, at now: MonotonicTime, retry: Duration) {
    pending = nil
    notBefore = nil
    if case .failed = outcome { notBefore = now + retry } else { needsRead = false }
  }

  /// The time of the next retry, if one waits.
  var deadline: MonotonicTime? { pending == nil ? notBefore : nil }
}
