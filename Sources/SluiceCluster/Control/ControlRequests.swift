import SluiceIO

/// The pending and waiting writes and reads of `SLUICE_CTL`: one at a time for each subject.
struct ControlRequests {
  private enum Request {
    case write(ControlWrite)
    /// With the subject's last sequence that the node knew when it sent the request.
    case read(ControlRecord, known: UInt64)
  }

  private let retry: Duration
  /// The queues of busy and waiting subjects: a few of 10,000 shards.
  private var queues: [String: SubjectQueue] = [:]
  /// Subjects that must be read before the next write.
  private var unread: [String: ControlRecord] = [:]
  /// Subjects that the engine has once reported as empty although the node knows a message with this sequence.
  private var doubted: [String: UInt64] = [:]
  private var pending: [UInt64: (request: Request, sent: MonotonicTime)] = [:]
  private var lastNumber: UInt64 = 0

  init(retry: Duration) {
    self.retry = retry
  }

  /// The number of the next request, which is also in the records of nodes and shards.
  var nextNumber: UInt64 { lastNumber + 1 }

  /// Begins a write.
  ///
  /// - Returns: nil if another request for the subject is pending or waits.
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

  /// Handles the result of a write.
  ///
  /// - Returns: the write and when it was sent; nil if no write has that number.
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

  /// Handles the result of a read.
  ///
  /// The result "no message" doesn't apply to a message that the node has received since it sent the read, because the engine's answer may arrive later
  /// through another server. A leader may also report it for a message that another server has already sent, until the leader has applied what it has
  /// committed. The read is then repeated, and the result accepted when it is the same twice.
  ///
  /// - Parameter directory: the node's present knowledge.
  /// - Returns: the record that was to be written; nil for an unknown read, and for a result that doesn't count.
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

  /// Takes the reads that are due: after writes that were refused or whose result is unknown.
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

  /// Whether a message for the subject is pending, or the result of one is unknown.
  func isBusy(_ subject: String) -> Bool { queues[subject]?.isBusy ?? false }

  /// Whether no requests are pending or wait.
  var areIdle: Bool { queues.isEmpty }

  /// The times at which waiting requests may be sent.
  var deadlines: [MonotonicTime] { queues.values.compactMap(\.deadline) }
}
