import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// One named, totally ordered log of records with at most one terminal event, and what decides how its producers are paced.
///
/// Shared by all loops. Appending and ending take one short lock, once per batch; reading takes none: readers follow the head and the
/// condition of the ``TopicEpoch`` that they were given. What is attached on a loop hangs on that loop's ``TopicLoopState``.
final class Topic: Sendable {
  enum AppendResult {
    case appended(lastOffset: UInt64)
    case refused(Fault)
    /// The batch isn't one for this topic: the producer is told, and its publication is over.
    case unfit(Fault)
  }

  struct State {
    var epoch: TopicEpoch
    /// The producer that has ended this epoch or, if the topic starts over, the one before; 0 for one without a number.
    var endedBy: UInt64 = 0
    var producers: ProducerTable
    var cursors: CursorTable
    var isDeleted = false
    /// Of the connection that has made it, as long as it is there.
    var quota: TopicQuota?
    /// Of an inbox: the name of the identity that may read it.
    var owner: String?
    /// One per loop on which somebody is attached.
    var loopStates: [TopicLoopState] = []
    /// Attached, to whatever epoch.
    var subscriptions = 0
    /// Attached to the present epoch: they connect the topic, and keep it from starting over.
    var presentSubscriptions = 0
    /// Subscriptions that are told how many publications there are.
    var producerWatchers = 0
    /// Since when the topic has been without a producer after its last one left; nil while it has one, or never had one.
    var producersLostAt: MonotonicTime?
    /// Whether the timer runs that fails the topic when its producers stay lost.
    var isLossTimed = false
    /// When the first subscriber of the present epoch came; nil before.
    var firstSubscribedAt: MonotonicTime?
    /// Whether a client has stated the settings; otherwise they are defaults.
    var isStated = false
    /// The head when the last subscriber left, or 0; of use while there is none.
    var lastSubscriberOffset: UInt64 = 0
    /// Since when nobody is known to have been attached, for a topic that is deleted then.
    var unusedSince: MonotonicTime?
    var isConnected: Bool
    /// How producers are paced, by the settings. Here, where the path of a batch reads it without counting references.
    var strategy: any FlowStrategy
    var budget = PublishingBudget()
    /// What stops producers now, as the topic's ``Topic/holds`` have it.
    var hold: HoldLog.Cause?
    /// Those of the present epoch, by name.
    var groups: [String: Group] = [:]
    /// What isn't on disk yet; nil for a topic that is in memory only.
    var tail: UncommittedTail?
    /// Why nothing can be published to the topic any more, of a durable one of which the store has refused something.
    var storeRejection: Fault?
    /// What went through the topic on loopStates that there aren't any more.
    var traffic = TrafficCount()
    /// What the retention limits have dropped of epochs before.
    var formerlyDropped = DroppedRecords()
  }

  let name: String
  /// What the topic was made with.
  private let initial: EffectiveSettings
  /// What a client has stated since; set once at most, with the lock held. Reading it counts references: the path of a batch reads ``isPaced`` and
  /// ``State/strategy`` instead.
  let stated = AtomicLazyReference<EffectiveSettings>()
  /// Set once at most after the start, with the lock held.
  private let paced: Atomic<Bool>
  /// Nil for a topic that is in memory only.
  let storage: StoreTopicState?
  /// The most records that one producer may be granted at a time.
  let window: UInt64
  /// Nil where memory isn't watched.
  let memory: MemoryWatch?
  /// Its own, and its cursors' and producers', of what is kept besides records; nil where memory isn't watched.
  private let kept: KeptMemory.Share?
  let state: Mutex<State>
  /// Whether some producer has been granted less than it could use, so that it wants to know when subscribers have moved.
  let isHeldUp = Atomic(false)

  /// What has stopped producers. Changed with the lock of `state` held; it may be read without.
  let holds = Mutex(HoldLog())
  /// How many holds have begun.
  let holdCount = Atomic<UInt64>(0)

  /// The batch whose way to a subscriber is measured.
  let sampledBatch = SampledBatch()

  /// Counts the changes besides records of which producers are notified: an ending, a new epoch, connection.
  let stateVersion = Atomic<UInt64>(0)

  private let makeEpoch: @Sendable () -> TopicEpoch

  /// - Parameters:
  ///   - storage: what there is of it on disk; nil for a topic that is in memory only.
  ///   - makeEpoch: an empty epoch with an epoch of its own; called now and whenever the topic starts over.
  init(
    name: String, settings: TopicSettings, window: UInt64, memory: MemoryWatch? = nil,
    producers: ProducerTable.Limits = ProducerTable.Limits(),
    cursors: CursorTable.Limits = CursorTable.Limits(), storage: StoreTopicState? = nil,
    makeEpoch: @escaping @Sendable () -> TopicEpoch
  ) {
    self.name = name
    initial = EffectiveSettings(settings)
    paced = Atomic(settings.flow != .free)
    self.window = window
    self.memory = memory
    let kept = memory.map { KeptMemory.Share($0.kept, KeptMemory.topic + 3 * name.utf8.count) }
    self.kept = kept
    self.makeEpoch = makeEpoch
    self.storage = storage
    state = Mutex(
      State(
        epoch: makeEpoch(), producers: ProducerTable(limits: producers, isKept: storage != nil, kept: kept),
        cursors: CursorTable(limits: cursors, isKept: storage != nil, kept: kept),
        isConnected: settings.connect == .immediate, strategy: settings.strategy,
        tail: storage.map { UncommittedTail($0.birthExtent) }))
  }

  /// The present epoch.
  var epoch: TopicEpoch { state.withLock { $0.epoch } }

  /// Complete: no setting is nil. They change once at most, before the topic's first record: see ``adopt(_:completed:isExact:)``.
  var settings: TopicSettings { (stated.load() ?? initial).settings }

  /// Whether producers follow subscribers at all. For the path of a batch, too.
  var isPaced: Bool { paced.load(ordering: .relaxed) }

  /// Replaces the settings. With the lock held, once at most.
  func apply(_ settings: TopicSettings, to state: inout State) {
    _ = stated.storeIfNil(EffectiveSettings(settings))
    state.strategy = settings.strategy
    paced.store(settings.flow != .free, ordering: .relaxed)
  }

  /// Whether what producers are granted is limited: because they follow subscribers, or the disk.
  var isMetered: Bool { isPaced || storage != nil }

  /// Appends a checked batch and wakes whoever waits for it. From any loop.
  ///
  /// - Parameters:
  ///   - epoch: the one that the producer knows.
  ///   - isSource: whether the publication is a source's. Where ``startsSourcesAnew`` holds, a batch for an epoch that is over is refused.
  ///   - used: what of the producer's grants the batch takes.
  ///   - ticket: of a producer with a number.
  ///   - needsSubscriber: whether the batch is refused while the topic has no subscriber.
  func append(
    _ batch: UnsafeRawBufferPointer, count: UInt32, at milliseconds: Int64, in epoch: TopicEpoch,
    isSource: Bool = false, using used: PublishingBudget.Allowance, by ticket: ProducerTable.Ticket? = nil,
    needsSubscriber: Bool = false
  ) -> AppendResult {
    if epoch.newest != nil, let fault = unsafe keyRequired(by: batch) {
      state.withLock { $0.budget.spend(used) }
      return .unfit(fault)
    }
    var commitDelay: Duration?
    let (result, loopStates): (AppendResult, [TopicLoopState]) = state.withLock { state in
      // The connection has taken it from the publication already, whatever becomes of the batch.
      state.budget.spend(used)
      if let fault = Self.refusal(state, epoch, name) { return (.refused(fault), []) }
      if needsSubscriber, state.presentSubscriptions == 0 { return (.unfit(.noResponders(on: name)), []) }
      if let ticket, !state.producers.isCurrent(ticket) { return (.refused(.fenced(on: name)), []) }
      if isSource, epoch !== state.epoch, startsSourcesAnew { return (.refused(.startedOver(name)), []) }
      if let ticket { _ = state.producers.advance(ticket, by: UInt64(count)) }
      if let storage {
        return unsafe store(batch, count, milliseconds, ticket, storage, &state, &commitDelay)
      }
      if let newest = state.epoch.newest {
        // Before the log: whoever has read these up to some head of the log goes on behind it.
        unsafe newest.append(batch, at: milliseconds, keepingFrom: keepNewestFrom(state))
      }
      let first = unsafe state.epoch.log.append(
        batch, count: Int(count), at: milliseconds, keepingFrom: keepFrom(state))
      return (.appended(lastOffset: first + UInt64(count) - 1), state.loopStates)
    }
    for loopState in loopStates { loopState.wake() }
    if let commitDelay { storage?.service.enqueue(self, within: commitDelay) }
    return result
  }

  /// The same for a durable topic, with the lock held. With `sync` always nobody gets the batch before it is on disk.
  ///
  /// - Parameter commitDelay: within which time a commit has to be asked for, if so.
  private func store(
    _ batch: UnsafeRawBufferPointer, _ count: UInt32, _ milliseconds: Int64,
    _ ticket: ProducerTable.Ticket?, _ storage: StoreTopicState, _ state: inout State,
    _ commitDelay: inout Duration?
  ) -> (AppendResult, [TopicLoopState]) {
    let waited = state.tail?.waitingBytes ?? 0
    let first = unsafe state.tail?.append(batch, count: count, at: milliseconds) ?? 0
    if let ticket, let (producer, next) = state.producers.next(of: ticket) {
      state.tail?.note(producer: producer, next: next)
    }
    let waiting = state.tail?.waitingBytes ?? 0
    storage.service.noteWaiting(waiting - waited)
    let isMuch = state.tail.map { $0.bytesForNextCommit >= StoreService.commitBytes } ?? false
    let delay = isMuch ? .zero : storage.delay
    if state.tail?.ask(within: delay) == true { commitDelay = delay }
    let result = AppendResult.appended(lastOffset: first + UInt64(count) - 1)
    if storage.isSynchronous { return (result, []) }
    // What isn't on disk must be in memory.
    unsafe state.epoch.log.append(
      batch, count: Int(count), at: milliseconds, keepingFrom: state.tail?.committed)
    return (result, state.loopStates)
  }

  /// Drops what has become too old. From any loop.
  func trim(now milliseconds: Int64) {
    state.withLock { state in
      let isRead = state.presentSubscriptions > 0
      // On disk it is as well, and memory is for those who follow the head.
      if !isRead, let tail = state.tail { return state.epoch.log.drop(before: tail.committed) }
      // The grace is for those who are reading.
      state.epoch.log.trim(
        now: milliseconds, graceBytes: isRead ? nil : 0, keepingFrom: state.tail?.committed ?? keepFrom(state)
      )
      state.epoch.newest?.trim(
        now: milliseconds, graceBytes: isRead ? nil : 0, keepingFrom: keepNewestFrom(state))
    }
  }

  /// What must not be dropped for the sake of those who follow, whatever the limits.
  func keepFrom(_ state: State) -> UInt64? {
    isPaced ? state.strategy.keepFrom(state.readers, unreadFrom: state.unreadFrom) : nil
  }

  /// Sets the terminal event, after all records appended so far. From any loop.
  ///
  /// - Parameters:
  ///   - epoch: the one that the producer knows.
  ///   - producer: whose wish it is; 0 for one without a number.
  ///   - ticket: the producer's.
  ///   - isSource: as in ``append(_:count:at:in:isSource:using:by:needsSubscriber:)``.
  /// - Returns: why not, when the topic is over already, unless this producer has ended it.
  func end(
    _ ending: Complete.Ending, in epoch: TopicEpoch, by producer: UInt64 = 0,
    _ ticket: ProducerTable.Ticket? = nil, isSource: Bool = false
  ) -> Fault? {
    let (refusal, loopStates): (Fault?, [TopicLoopState]) = state.withLock { state in
      if let ticket, !state.producers.isCurrent(ticket) { return (.fenced(on: name), []) }
      if state.isEnded(by: producer) { return (nil, []) }
      if let fault = Self.refusal(state, epoch, name) { return (fault, []) }
      if isSource, epoch !== state.epoch, startsSourcesAnew { return (.startedOver(name), []) }
      return (nil, end(ending, by: producer, &state))
    }
    notify(loopStates)
    if refusal == nil { commit(within: .zero) }
    return refusal
  }

  /// Sets the terminal event. With the lock held; the caller has checked that the topic is open.
  ///
  /// - Returns: the loopStates to which the end is to be announced.
  func end(_ ending: Complete.Ending, by producer: UInt64 = 0, _ state: inout State) -> [TopicLoopState] {
    if state.tail != nil {
      // Subscribers and producers are told of the ending when it is on disk.
      state.tail?.end(ending, by: producer)
      return []
    }
    state.epoch.end(ending)
    state.endedBy = producer
    if settings.scope == .whileConnected { startOver(&state) }
    return state.loopStates
  }

  /// Ends everybody's attachment and drops the records. From any loop; the registry has forgotten the topic already.
  func delete() {
    let (epoch, loopStates) = state.withLock { state in
      state.isDeleted = true
      state.tail?.noteRow()
      state.epoch.delete()
      state.groups = [:]
      state.quota?.gone()
      state.quota = nil
      return (state.epoch, state.loopStates)
    }
    epoch.log.removeAll()
    epoch.newest?.removeAll()
    notify(loopStates)
    commit(within: .zero)
  }

  /// Why nothing can be published to `epoch`, if so.
  static func refusal(_ state: State, _ epoch: TopicEpoch, _ name: String) -> Fault? {
    if state.isDeleted { return Fault(code: .topicDeleted, message: "topic \(name) was deleted") }
    if let fault = state.storeRejection { return fault }
    let how: String
    switch epoch.ending ?? state.tail?.ending?.ending {
    case nil: return nil
    case .finished: how = "has finished"
    case .failure(_, let message): how = "has failed (\(message))"
    }
    return Fault(
      code: .topicEnded, message: "topic \(name) \(how); delete it to start it anew, or publish to another")
  }

  /// The next epoch. Called with the lock held.
  func startOver(_ state: inout State) {
    let former = state.epoch.condition
    if former == .open { state.epoch.supersede() }
    state.formerlyDropped.add(state.epoch.dropped)
    state.epoch = makeEpoch()
    if stated.load() != nil { state.epoch.log.retain(settings.retention) }
    state.presentSubscriptions = 0
    state.firstSubscribedAt = nil
    switch settings.connect {
    case .auto, .autoStay: state.isConnected = false
    // It is the end that takes a CONNECT back, not the last subscriber.
    case .manual: if former == .ended { state.isConnected = false }
    case .immediate, nil: break
    }
    // Whose members are still at it go on with the epoch that is over.
    state.groups = [:]
    state.lastSubscriberOffset = state.epoch.log.head
  }

  /// The broker itself has published a record here. From any loop.
  func published(bytes: Int) {
    state.withLock { $0.traffic.received(1, bytes: bytes) }
  }

  // MARK: Taps

  /// The loopState of `loop` on this topic, made on first use. On that loop only.
  func loopState(on loop: LoopContext) -> TopicLoopState {
    state.withLock { state in
      if let loopState = state.loopStates.first(where: { $0.loop === loop }) { return loopState }
      let loopState = TopicLoopState(topic: self, loop: loop)
      state.loopStates.append(loopState)
      return loopState
    }
  }

  /// Forgets a loopState on which nobody is attached any more. On its loop only.
  func remove(_ loopState: TopicLoopState) {
    state.withLock { state in
      guard let index = state.loopStates.firstIndex(where: { $0 === loopState }) else { return }
      state.loopStates.remove(at: index)
      state.traffic.add(loopState.traffic)
    }
  }

  /// The loopStates of this moment, for looking at who is attached. From any loop.
  var loopStates: [TopicLoopState] { state.withLock { $0.loopStates } }

  /// Has attached streams look at what has changed besides records.
  func notify(_ loopStates: [TopicLoopState]) {
    guard !loopStates.isEmpty else { return }
    stateVersion.add(1, ordering: .releasing)
    for loopState in loopStates { loopState.wake() }
  }

  var isDeleted: Bool { state.withLock { $0.isDeleted } }
}

extension Topic.State {
  /// Where the last subscriber was when it left; nil while there are any.
  var unreadFrom: UInt64? { presentSubscriptions == 0 ? lastSubscriberOffset : nil }

  func isEnded(by producer: UInt64) -> Bool {
    producer != 0 && (endedBy == producer || tail?.ending?.producer == producer) && !isDeleted
  }

  /// Where the subscriptions of all loops, and the groups, stand.
  var readers: ReaderPositions {
    var readers = loopStates.reduce(into: ReaderPositions()) { $0.merge($1.positions) }
    for group in groups.values {
      if let position = group.flow.position { readers.add(position) }
    }
    return readers
  }
}

extension Topic {
  /// Why nothing can be published now, if so.
  var refusal: Fault? { state.withLock { Self.refusal($0, $0.epoch, name) } }

  /// The topic in a few numbers. From any loop; each number is of some moment during the call.
  var summary: TopicSummary {
    let (epoch, subscriptions, publications) = state.withLock {
      ($0.epoch, $0.subscriptions, $0.budget.publications)
    }
    let kept = epoch.kept()
    return TopicSummary(
      topic: name, epoch: epoch.number, firstOffset: kept.firstOffset, nextOffset: kept.head,
      bytes: UInt64(kept.bytes), ending: epoch.ending, subscriptions: UInt32(clamping: subscriptions),
      publications: UInt32(clamping: publications), records: kept.records,
      storage: settings.storage ?? .memory)
  }
}
