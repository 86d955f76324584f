import SluiceIO

/// The writes and reads of `SLUICE_CTL` that are under way or wait: one at a time for each subject.
struct ControlRequests {
  private enum Request {
    case write(ControlWrite)
    /// With the last sequence of the subject that the node knew when it asked.
    case read(ControlRecord, known: UInt64)
  }

  private let retry: Duration
  /// Those that are busy or wait: of 10,000 shards a few.
  private var queues: [String: SubjectQueue] = [:]
  /// The subjects that have to be read before anything is written there.
  private var unread: [String: ControlRecord] = [:]
  /// The subjects of which the engine has once said that there is no message, although the node knows the one of this sequence.
  private var doubted: [String: UInt64] = [:]
  private var pending: [UInt64: (request: Request, sent: MonotonicTime)] = [:]
  private var lastNumber: UInt64 = 0

  init(retry: Duration) {
    self.retry = retry
  }

  /// The number of the next request; stands in the records of nodes and shards, too.
  var nextNumber: UInt64 { lastNumber + 1 }

  /// Makes a write.
  ///
  /// - Returns: nil when another request about the subject is under way or waits.
  mutating func write(_ record: ControlRecord, expecting sequence: UInt64, at now: MonotonicTime)
    -> ControlWrite?
  {
    let subject = record.subject
    var queue = queues[subject] ?? SubjectQueue()
    guard queue.isReady(at: now) else { return nil }
    lastNumber += 1
    queue.sent(lastNumber)
    queues[subject] = queue
    let write = ControlWrite(number: lastNumber, record: record, expected: sequence)
    pending[lastNumber] = (.write(write), now)
    return write
  }

  /// A write has an outcome.
  ///
  /// - Returns: the write and when it was sent; nil for one that isn't known.
  mutating func finished(
    _ number: UInt64, _ outcome: WriteOutcome, at now: MonotonicTime
  ) -> (write: ControlWrite, sent: MonotonicTime)? {
    guard case .write(let write)? = pending[number]?.request, let sent = pending[number]?.sent else {
      return nil
    }
    pending[number] = nil
    settle(write.record.subject) { [retry] in $0.finished(outcome, at: now, retry: retry) }
    if outcome == .refused || outcome == .unknown { unread[write.record.subject] = write.record }
    return (write, sent)
  }

  /// A read has an outcome.
  ///
  /// That there is no message says nothing about one that the node has heard of since it asked: the engine's answer may come behind it, by another
  /// of its servers. A leader may even say so of a message that another server has sent already, until it has applied what it has committed. It
  /// is asked again then, and believed when it says so twice.
  ///
  /// - Parameter directory: what the node knows by now.
  /// - Returns: the record that was wanted there; nil for a read that isn't known, and for an outcome that doesn't count.
  mutating func read(
    _ number: UInt64, _ outcome: ReadOutcome, knowing directory: Directory, at now: MonotonicTime
  ) -> ControlRecord? {
    guard case .read(let record, let asked)? = pending.removeValue(forKey: number)?.request else {
      return nil
    }
    let subject = record.subject
    let known = directory.sequence(of: subject)
    let doubt = doubted.removeValue(forKey: subject)
    var counts = outcome != .failed
    var isRepeated = !counts
    if outcome == .none, known != asked {
      counts = false
    } else if outcome == .none, known != 0, doubt != known {
      doubted[subject] = known
      counts = false
      isRepeated = true
    }
    settle(subject) { [retry] in $0.read(isRepeated ? .failed : outcome, at: now, retry: retry) }
    if isRepeated { unread[subject] = record }
    return counts ? record : nil
  }

  private mutating func settle(_ subject: String, _ change: (inout SubjectQueue) -> Void) {
    guard var queue = queues[subject] else { return }
    change(&queue)
    queues[subject] = queue.isIdle ? nil : queue
  }

  /// The reads that are due: what became of writes whose outcome isn't known, and what is there where one was refused.
  mutating func takeReads(
    knowing directory: Directory, at now: MonotonicTime
  ) -> [(number: UInt64, record: ControlRecord)] {
    if unread.isEmpty { return [] }
    var reads: [(UInt64, ControlRecord)] = []
    for subject in unread.keys.sorted() where queues[subject]?.wantsRead(at: now) == true {
      guard let record = unread.removeValue(forKey: subject) else { continue }
      lastNumber += 1
      queues[subject]?.sent(lastNumber)
      pending[lastNumber] = (.read(record, known: directory.sequence(of: subject)), now)
      reads.append((lastNumber, record))
    }
    return reads
  }

  /// Whether a message about the subject is under way, or it isn't known what became of one.
  func isBusy(_ subject: String) -> Bool { queues[subject]?.isBusy ?? false }

  /// Nothing is under way about any subject, and nothing waits.
  var areIdle: Bool { queues.isEmpty }

  /// When requests that wait may be made.
  var deadlines: [MonotonicTime] { queues.values.compactMap(\.deadline) }
}
