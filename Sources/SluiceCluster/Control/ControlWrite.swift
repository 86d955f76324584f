import SluiceIO

/// A message to be stored if the last one of its subject is the expected one.
struct ControlWrite: Hashable, Sendable {
  /// Counts all writes and reads of the process; stands in the records of nodes and shards, too.
  var number: UInt64
  var record: ControlRecord
  /// The sequence of the subject's last message; 0 for none.
  var expected: UInt64
}

/// What has become of a write.
enum WriteOutcome: Hashable, Sendable {
  case stored(UInt64)
  /// Another message was there: nothing was stored.
  case refused
  /// It wasn't stored, and may be tried again.
  case notStored
  /// It may have been stored, or be stored yet.
  case unknown
}

/// What a read of a subject's last message at the stream's leader has found.
enum ReadOutcome: Hashable, Sendable {
  case found(ControlRecord, UInt64)
  case none
  case failed
}

/// The requests about one subject: one at a time, and a read after each that was refused or whose outcome isn't known.
///
/// A write whose outcome isn't known may still be stored after the read. It is harmless: its expectation fails as soon as something else is stored.
struct SubjectQueue: Hashable, Sendable {
  private(set) var pending: UInt64?
  private(set) var needsRead = false
  private var notBefore: MonotonicTime?

  /// Whether a write may be sent.
  func isReady(at now: MonotonicTime) -> Bool {
    pending == nil && !needsRead && notBefore.map { $0 <= now } ?? true
  }

  /// A message is under way, or it isn't known what became of one.
  var isBusy: Bool { pending != nil || needsRead }

  /// Nothing is under way, and nothing waits.
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

  /// When something waits for its next try.
  var deadline: MonotonicTime? { pending == nil ? notBefore : nil }
}
