import ReactiveCore
import SluiceIO
import SluiceWire
import Synchronization

/// One producer's attachment to a topic: accepts records on any thread, and passes them to the connection as they are granted.
///
/// ```
///   send, publish ──► queue (lock) ──► take, on the loop ──► PUBLISH
///   upstream ◄── request(n) ◄── requestMore, on the loop ◄── DEMAND
/// ```
// @unchecked: variables are marked as guarded by `lock` or as used on the loop only; the others are constant.
final class Publication: @unchecked Sendable {
  typealias Ending = Subscribers.Completion<ClientError>
  typealias Calls = PublishQueue.Calls

  enum Phase {
    case active
    /// The topic ends when all accepted records are sent; no more are accepted.
    case completing(Ending)
    /// As `completing`, with the end of a source: if the topic starts over, its sources publish to the next epoch.
    case completingRun(Ending)
    /// The publication ends when all accepted records are sent; no more are accepted. The topic continues.
    case releasing(ClientError)
    case over(Ending)
  }

  /// The remaining work on the stream after all granted records were taken.
  enum Outlook {
    /// More records wait for a grant.
    case more
    /// More records wait for acknowledgements of earlier ones.
    case blocked
    case idle
    case complete(Complete.Ending)
    case release
  }

  /// The approximate size of a full PUBLISH, in bytes.
  static let batchSize = 64 << 10

  let topic: String
  let acknowledgement: PublishOpen.Acknowledgement
  let maximumRecord: Int
  let whenFull: TopicSubject.WhenFull
  /// The settings stated for the topic; all nil for none.
  let settings: TopicSettings
  /// The id that the caller gave; nil for a random one.
  private let chosenProducer: UInt64?
  /// Whether the broker refuses batches while the topic has no subscriber.
  private let isRequester: Bool
  let core: ClientCore
  /// Delivers the accepted messages to the subject's own subscribers.
  let echo = PassthroughSubject<Message, ClientError>()
  let hasListeners = Atomic<Bool>(false)
  /// The values of ``TopicSubject/state``.
  let states = CurrentValueSubject<PublishingState, Never>(.active)

  // Guarded by the lock. The runtime's checks of exclusive access are off, since they would be the largest cost of a send.
  let lock = Lock()
  @exclusivity(unchecked) var queue: PublishQueue
  @exclusivity(unchecked) var phase = Phase.active
  /// Whether an `.advance` command is pending, or the loop checks without one.
  @exclusivity(unchecked) var isScheduled = false
  @exclusivity(unchecked) var upstreams: [any Subscription] = []
  @exclusivity(unchecked) var sources: [SourceAttachment] = []
  /// Records requested from upstreams that haven't arrived.
  @exclusivity(unchecked) var promised = 0
  @exclusivity(unchecked) var completions: [PublishQueue.Completion] = []

  // On the loop only.
  var stream: UInt32 = 0
  /// The node that serves the stream; nil for the client's own broker.
  var node: DirectLink?
  var isOpen = false
  /// Whether the broker reports on this stream if the topic is connected; its last report.
  private(set) var isOpenedAsSource = false
  var isTopicConnected: Bool?
  var isCompletionSent = false
  /// 0 before the first stream.
  private var producer: UInt64 = 0
  /// The records of the topic that the broker has acknowledged.
  private var known = KnownHistory(epoch: 0, nextOffset: 0)
  /// The delays while the broker's storage refuses the publication.
  var reopening = Reopening()
  var move: Move?
  var doubts = DoubtfulOpenings()
  /// True while it is among the connection's due publications.
  var isDue = false

  init(
    topic: String, acknowledgement: PublishOpen.Acknowledgement = .received, maximumRecord: Int,
    buffer: TopicSubject.Buffer = .init(), whenFull: TopicSubject.WhenFull = .fail,
    producer: TopicSubject.Producer? = nil, isRequester: Bool = false,
    settings: TopicSettings = TopicSettings(), core: ClientCore
  ) {
    self.topic = topic
    self.acknowledgement = acknowledgement
    self.maximumRecord = maximumRecord
    self.whenFull = whenFull
    self.isRequester = isRequester
    self.settings = settings
    self.core = core
    chosenProducer = producer?.id
    unsafe queue = PublishQueue(
      limits: buffer, isUnacknowledged: acknowledgement == .none,
      firstSequence: producer?.firstSequence ?? 0)
  }

  /// Returns the frame that continues behind the acknowledged records. On the loop only.
  func opening() -> PublishOpen {
    // Also without acknowledgements: the id fences records that an earlier connection still has in flight, which would otherwise follow later records.
    if producer == 0 { producer = chosenProducer ?? core.makeProducer() }
    let firstSequence: UInt64
    (firstSequence, isOpenedAsSource) = lock.withLock { unsafe (queue.firstSequence, !sources.isEmpty) }
    return PublishOpen(
      topic: topic, acknowledgement: acknowledgement,
      role: isOpenedAsSource ? .source : isRequester ? .requester : .producer, producer: producer,
      firstSequence: firstSequence, settings: settings,
      known: known.nextOffset > 0 ? known : KnownHistory(epoch: 0, nextOffset: 0))
  }

  /// Handles the opening of the publication. If the broker reports that it has lost acknowledged records, the program is notified by ``Client/notices``. On
  /// the loop only.
  ///
  /// - Throws: if the broker expects a record that was never sent.
  func opened(_ frame: PublishOpened) throws(WireError) {
    try resume(at: frame.nextSequence)
    guard frame.epoch != known.epoch else { return }
    known = KnownHistory(epoch: frame.epoch, nextOffset: frame.lostFrom ?? known.nextOffset)
    if let lost = frame.lostFrom {
      core.notices.send(
        TopicNotice(
          topic: topic, change: lost == 0 ? .restarted(nextOffset: 0) : .rewound(nextOffset: lost)))
    }
  }

  /// The broker has acknowledged the record at that offset. On the loop only.
  func noteAcknowledged(_ offset: UInt64) { known.nextOffset = offset &+ 1 }

  /// Whether the caller gave the producer's id.
  var hasChosenProducer: Bool { chosenProducer != nil }

  /// The next stream gets a new producer id. On the loop only.
  func forgetProducer() {
    producer = 0
  }

  /// The broker expects the record with the sequence `next`. On the loop only.
  ///
  /// - Throws: if that record was never sent.
  private func resume(at next: UInt64) throws(WireError) {
    let calls = lock.withLock { unsafe queue.resume(at: next, mayBeAhead: chosenProducer != nil) }
    guard let calls else {
      throw WireError(
        .malformedFrame, "PUBLISH_OPENED expects record \(next) of topic \(topic), and so many weren't sent")
    }
    Self.run(calls)
    // Without records that wait, no acknowledgement will show that the broker accepts records.
    if acknowledgement == .none || lock.withLock({ unsafe queue.isEmpty && queue.isAcknowledged }) {
      noteAccepted()
    }
  }

  // MARK: - From any thread

  func attach<S: Subscriber>(_ subscriber: S) where S.Input == Message, S.Failure == ClientError {
    hasListeners.store(true, ordering: .relaxed)
    echo.subscribe(subscriber)
  }

  /// Whether it accepts records.
  var isActive: Bool {
    lock.withLock { if case .active = unsafe phase { true } else { false } }
  }

  /// Whether all accepted records are acknowledged.
  var isFlushed: Bool { lock.withLock { unsafe queue.isEmpty && queue.isAcknowledged } }

  /// The failure with which it has ended, if any.
  var failure: ClientError? {
    lock.withLock { if case .over(.failure(let error)) = unsafe phase { error } else { nil } }
  }

  var counts: (accepted: UInt64, acknowledged: UInt64, dropped: UInt64) {
    lock.withLock { unsafe (queue.accepted, queue.acknowledgedCount, queue.dropped) }
  }

  /// Changes what the lock guards. `change` returns whether an `.advance` command must be posted.
  @inline(__always)
  func update(_ change: () -> Bool) {
    if lock.withLock(change) { core.post(.advance(self)) }
  }

  // MARK: Under the lock

  /// Returns whether an `.advance` command must be posted.
  func schedule() -> Bool {
    if unsafe isScheduled { return false }
    unsafe isScheduled = true
    return true
  }

  static func outcome(_ ending: Ending) -> PublishQueue.Outcome {
    switch ending {
    case .finished: .success(TopicSubject.Receipt(sequence: 0, offset: nil))
    case .failure(let error): .failure(error)
    }
  }

  static func run(_ calls: Calls) {
    for (completion, outcome) in calls { completion(outcome) }
  }
}
