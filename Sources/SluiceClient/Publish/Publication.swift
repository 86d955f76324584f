import ReactiveCore
import SluiceIO
import SluiceWire
import Synchronization

/// One producer's attachment to a topic: accepts records on any thread, and gives them to the connection as they are granted.
///
/// ```
///   send, publish ──► queue (lock) ──► take, on the loop ──► PUBLISH
///   upstream ◄── request(n) ◄── requestMore, on the loop ◄── DEMAND
/// ```
// @unchecked: `lock` guards what is marked so; what is marked so is used on the loop only; the rest is constant.
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

  /// What is left to do on the stream after all granted records were taken.
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
  /// An `.advance` command is under way, or the loop will look without one.
  @exclusivity(unchecked) var isScheduled = false
  @exclusivity(unchecked) var upstreams: [any Subscription] = []
  @exclusivity(unchecked) var sources: [SourceAttachment] = []
  /// Records requested from upstreams that haven't arrived.
  @exclusivity(unchecked) var promised = 0
  @exclusivity(unchecked) var completions: [PublishQueue.Completion] = []

  // On the loop only.
  var stream: UInt32 = 0
  var isOpen = false
  /// Whether the broker reports on this stream if the topic is connected; its last report.
  private(set) var isOpenedAsSource = false
  var isTopicConnected: Bool?
  var isCompletionSent = false
  /// 0 before the first stream.
  private var producer: UInt64 = 0
  /// Set while the publication backs off because the broker's storage refused it.
  var retryTimer: TimerToken?
  var reopening = Reopening()
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
    if producer == 0 { producer = chosenProducer ?? core.makeProducer() }
    let firstSequence: UInt64
    (firstSequence, isOpenedAsSource) = lock.withLock { unsafe (queue.firstSequence, !sources.isEmpty) }
    return PublishOpen(
      topic: topic, acknowledgement: acknowledgement,
      role: isOpenedAsSource ? .source : isRequester ? .requester : .producer, producer: producer,
      firstSequence: firstSequence, settings: settings)
  }

  /// Whether the caller gave the producer's id.
  var hasChosenProducer: Bool { chosenProducer != nil }

  /// The next stream gets a new producer id. On the loop only.
  func forgetProducer() {
    producer = 0
  }

  /// The broker expects the record with the sequence `next`. On the loop only.
  ///
  /// - Throws: if that record was never sent.
  func resume(at next: UInt64) throws(WireError) {
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

  // MARK: - Records in, from any thread

  /// Accepts a message, or does what ``whenFull`` says.
  ///
  /// - Parameter isOwed: it was requested from upstream while there was room for it.
  func send(_ message: Message, isOwed: Bool = false) {
    let length: Int
    do { length = try message.bodyLength() } catch { return release(error) }
    if send(length, isOwed: isOwed, { message.append(to: &$0) }), hasListeners.load(ordering: .relaxed) {
      echo.send(message)
    }
  }

  func send(copying payload: UnsafeRawBufferPointer) {
    let isAccepted = send(payload.count) { unsafe Message.append(payload, to: &$0) }
    if isAccepted, hasListeners.load(ordering: .relaxed) { unsafe echo.send(Message([UInt8](payload))) }
  }

  /// Returns whether the record was accepted.
  @inline(__always)
  private func send(_ length: Int, isOwed: Bool = false, _ append: (inout [UInt8]) -> Void) -> Bool {
    if length > maximumRecord {
      release(tooLarge(length))
      return false
    }
    var calls: Calls = []
    var error: ClientError?
    var isAccepted = false
    update {
      guard case .active = unsafe phase else { return false }
      // Requested records are always accepted: there was room for them when they were requested.
      if unsafe promised > 0 {
        unsafe promised -= 1
      } else if !isOwed, unsafe queue.isFull {
        switch whenFull {
        case .fail:
          error = bufferFull
          return false
        case .dropNewest:
          unsafe queue.countDropped()
          return false
        case .dropOldest:
          if unsafe queue.count > 0 { calls = unsafe queue.dropOldest() }
        }
      }
      unsafe queue.accept(append)
      isAccepted = true
      return schedule()
    }
    if let error { release(error) }
    if !calls.isEmpty { Self.run(calls) }
    return isAccepted
  }

  /// Accepts a record if there is room. Returns whether it was accepted.
  func enqueue(copying payload: UnsafeRawBufferPointer) throws(ClientError) -> Bool {
    if payload.count > maximumRecord { throw tooLarge(payload.count) }
    var error: ClientError?
    var isAccepted = false
    update {
      guard case .active = unsafe phase else {
        error = inactivity
        return false
      }
      if unsafe queue.isFull { return false }
      unsafe queue.accept { unsafe Message.append(payload, to: &$0) }
      isAccepted = true
      return schedule()
    }
    if let error { throw error }
    if isAccepted, hasListeners.load(ordering: .relaxed) { unsafe echo.send(Message([UInt8](payload))) }
    return isAccepted
  }

  /// Accepts a message when there is room.
  ///
  /// - Parameter completion: called when it is accepted, or acknowledged with `awaitsAcknowledgement`; or with the failure.
  /// - Returns: an id to stop waiting for room with; nil if there was room.
  func enqueue(
    _ message: Message, awaitsAcknowledgement: Bool, _ completion: @escaping PublishQueue.Completion
  ) -> UInt64? {
    do throws(ClientError) {
      let length = try message.bodyLength()
      if length > maximumRecord { throw tooLarge(length) }
    } catch {
      completion(.failure(error))
      return nil
    }
    var error: ClientError?
    var waiterID: UInt64?
    var isAccepted = false
    update {
      error = inactivity
      guard error == nil else { return false }
      if unsafe queue.isFull {
        waiterID = unsafe queue.apply(message, awaitsAcknowledgement: awaitsAcknowledgement, completion)
      } else {
        unsafe queue.accept { message.append(to: &$0) }
        if awaitsAcknowledgement { unsafe queue.awaitLast(completion) } else { isAccepted = true }
      }
      return schedule()
    }
    if let error {
      completion(.failure(error))
      return nil
    }
    if isAccepted { completion(.success(TopicSubject.Receipt(sequence: 0, offset: nil))) }
    if hasListeners.load(ordering: .relaxed) { echo.send(message) }
    return waiterID
  }

  func withdraw(_ waiterID: UInt64) {
    Self.run(lock.withLock { unsafe queue.withdraw(waiterID) })
  }

  /// Calls `completion` when all records accepted so far are acknowledged.
  func flush(_ completion: @escaping PublishQueue.Completion) {
    let calls: Calls = lock.withLock {
      if case .over(let ending) = unsafe phase { return [(completion, Self.outcome(ending))] }
      return unsafe queue.awaitAll(completion)
    }
    Self.run(calls)
  }

  /// Ends the topic after the accepted records; calls `completion` when the broker has confirmed it.
  func complete(_ ending: Ending, _ completion: PublishQueue.Completion?) {
    var calls: Calls = []
    var cancelled: [any Cancellable] = []
    update {
      switch unsafe phase {
      case .active:
        unsafe phase = .completing(ending)
        cancelled = takeUpstreams()
        if let completion { unsafe completions.append(completion) }
        return schedule()
      case .completingRun:
        // The topic's end replaces that of the run.
        unsafe phase = .completing(ending)
        if let completion { unsafe completions.append(completion) }
      case .completing:
        if let completion { unsafe completions.append(completion) }
      case .releasing(let error):
        if let completion { calls = [(completion, .failure(error))] }
      case .over(let ending):
        if let completion { calls = [(completion, Self.outcome(ending))] }
      }
      return false
    }
    for upstream in cancelled { upstream.cancel() }
    Self.run(calls)
  }

  /// A source has ended: ends the topic after the accepted records. The subject's other sources are cancelled, and stay for the next run.
  func completeRun(_ ending: Ending) {
    var cancelled: [any Cancellable] = []
    update {
      guard case .active = unsafe phase else { return false }
      unsafe phase = .completingRun(ending)
      cancelled = unsafe upstreams
      unsafe upstreams = []
      return schedule()
    }
    for upstream in cancelled { upstream.cancel() }
  }

  /// Ends the publication after the accepted records. The topic continues.
  func release(_ error: ClientError) {
    var cancelled: [any Cancellable] = []
    update {
      switch unsafe phase {
      case .active: unsafe phase = .releasing(error)
      // The source's end is sent, and no other run follows.
      case .completingRun(let ending): unsafe phase = .completing(ending)
      case .completing, .releasing, .over: return false
      }
      cancelled = takeUpstreams()
      return schedule()
    }
    for upstream in cancelled { upstream.cancel() }
  }

  func attach(_ upstream: any Subscription) {
    var isAccepted = false
    update {
      guard case .active = unsafe phase else { return false }
      isAccepted = true
      unsafe upstreams.append(upstream)
      // Records requested from an upstream that was cancelled may never arrive.
      unsafe promised = 0
      return schedule()
    }
    if !isAccepted { upstream.cancel() }
  }

  func attach<S: Subscriber>(_ subscriber: S) where S.Input == Message, S.Failure == ClientError {
    hasListeners.store(true, ordering: .relaxed)
    echo.subscribe(subscriber)
  }

  /// Whether it accepts records.
  var isActive: Bool {
    lock.withLock { if case .active = unsafe phase { true } else { false } }
  }

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

  /// Why no records are accepted any more, if so.
  private var inactivity: ClientError? {
    switch unsafe phase {
    case .active: nil
    case .completing, .completingRun:
      ClientError(.topicEnded, "topic \(topic) was ended here; publish to another", topic: topic)
    case .releasing(let error), .over(.failure(let error)): error
    case .over(.finished):
      ClientError(.topicEnded, "topic \(topic) was ended here; publish to another", topic: topic)
    }
  }

  private func tooLarge(_ length: Int) -> ClientError {
    ClientError(
      .recordTooLarge,
      "a record has \(length) bytes; this broker's limit is \(maximumRecord): split it, or raise the broker's limit",
      topic: topic)
  }

  private var bufferFull: ClientError {
    ClientError(
      .bufferFull,
      unsafe "\(queue.count) records wait for topic \(topic), which is the limit: publish slower, use publish(_:) which waits, "
        + "or let the subject drop", topic: topic)
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
