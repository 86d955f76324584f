import SluiceIO
import SluiceNATS
import SluiceStore

/// A shard's unsettled commits in order: those that were sent, followed by those that wait.
///
/// ```
///   append ──► waiting ── send ──► sent ── acknowledged ──► takeStored, in order
///                 ▲                 │
///                 └── returnSent ◄──┘
/// ```
///
/// Each commit expects the stream's last sequence as it will be when the earlier ones are stored.
struct CommitPipeline {
  private(set) var waiting: [PendingCommit] = []
  private(set) var sent: [PendingCommit] = []
  /// The last sequence up to which all messages are known.
  private(set) var last: UInt64
  /// The stream's last sequence when all commits sent are stored.
  private(set) var predicted: UInt64

  init(behind last: UInt64) {
    self.last = last
    predicted = last
  }

  var isEmpty: Bool { waiting.isEmpty && sent.isEmpty }

  mutating func append(_ pending: PendingCommit) { waiting.append(pending) }

  // MARK: Sending

  /// The messages of the first waiting commit. There must be one.
  mutating func nextMessages(
    under fence: UInt64, _ topics: ShardTopics, _ names: EngineNames, atMost most: Int
  ) -> PendingCommit.Messages {
    waiting[0].messages(behind: predicted, under: fence, topics, names, atMost: most)
  }

  /// Marks the first waiting commit as sent in so many messages. A commit without messages is stored together with the earlier ones.
  mutating func send(_ messages: Int, at now: MonotonicTime) -> PendingCommit {
    var pending = waiting.removeFirst()
    predicted += UInt64(messages)
    pending.last = predicted
    pending.isStored = messages == 0
    pending.error = nil
    pending.sentAt = now
    sent.append(pending)
    return pending
  }

  // MARK: Answers

  /// A commit that was sent and whose result isn't known.
  func unanswered(_ number: UInt64) -> PendingCommit? { sent.first { $0.number == number && !$0.isStored } }

  mutating func acknowledged(_ number: UInt64) { change(number) { $0.isStored = true } }

  mutating func failed(_ number: UInt64, _ error: NATSError) { change(number) { $0.error = error } }

  /// See ``EngineFlaw/earlyAnswer``.
  mutating func answeredEarly(_ number: UInt64) { change(number) { $0.isAnswered = true } }

  /// Notes that the last message of a commit was found in the stream.
  mutating func found(_ number: UInt64, at sequence: UInt64) {
    change(number) { if $0.last == sequence { $0.isStored = true } }
  }

  private mutating func change(_ number: UInt64, _ body: (inout PendingCommit) -> Void) {
    for index in sent.indices where sent[index].number == number { body(&sent[index]) }
  }

  /// Removes and returns the oldest commit if it is stored: it may be settled.
  mutating func takeStored() -> PendingCommit? {
    guard let first = sent.first, first.isStored else { return nil }
    sent.removeFirst()
    last = max(last, first.last)
    return first
  }

  // MARK: Failures

  /// Whether the engine has refused all commits sent, so that none of them can be stored.
  var isAllRefused: Bool {
    sent.allSatisfy { pending in
      pending.error.map { $0.provesNothingWasStored || $0.code == .resourcesExhausted } ?? false
    }
  }

  /// Notes that all messages up to that sequence are known.
  mutating func learned(through sequence: UInt64) {
    last = max(last, sequence)
    if sent.isEmpty { predicted = last }
  }

  /// Returns all commits sent to those that wait, because none of them is stored or will count. A commit stored after an earlier one was refused doesn't
  /// count either.
  mutating func returnSent() {
    for index in sent.indices { sent[index].isStored = false }
    waiting = sent + waiting
    sent = []
    predicted = last
  }

  /// Removes and returns the waiting commits, which fail.
  mutating func takeWaiting() -> [PendingCommit] {
    defer { waiting = [] }
    return waiting
  }
}
