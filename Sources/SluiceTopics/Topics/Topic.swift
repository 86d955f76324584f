import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// A named, totally ordered log of records with at most one terminal event. It also decides how its producers are paced.
///
/// Shared by all loops. Appending and ending take one short lock, once per batch. Reading takes none: readers follow the head and the condition of their
/// ``TopicEpoch``. Streams on a loop are attached to that loop's ``TopicLoopState``.
package final class Topic: GroupTopic {
  package enum AppendResult {
    case appended(lastOffset: UInt64)
    case refused(Fault)
    /// The batch doesn't fit this topic: its publication ends with the error.
    case unfit(Fault)
  }

  package typealias State = TopicState

  package let name: String
  /// No setting is nil. Replaced with the lock of `state` held. Appending a batch reads ``isPaced`` and ``State/strategy`` instead.
  private let effective: Mutex<TopicSettings>
  /// Set with the lock held.
  private let paced: Atomic<Bool>
  /// Nil for a topic that is in memory only.
  package let storage: StoreTopicState?
  /// The most records that one producer may be granted at a time.
  package let window: UInt64
  /// Nil if memory isn't watched.
  package let memory: MemoryWatch?
  /// The memory of the topic, its cursors and producers besides records; nil if memory isn't watched.
  let kept: KeptAccount.Charge?
  package let state: Mutex<State>
  /// Whether a producer got fewer grants than it could use, so that it must be woken when subscribers move.
  let isHeldUp = Atomic(false)

  /// The log of what has stopped producers. Changed with the lock of `state` held; it may be read without.
  package let holds = Mutex(HoldLog())
  /// How many holds have begun.
  let holdCount = Atomic<UInt64>(0)

  /// The batch whose latency from append to delivery is measured.
  package let sampledBatch = SampledBatch()

  /// Counts the changes besides records of which producers are notified: an ending, a new epoch, a connection.
  let stateVersion = Atomic<UInt64>(0)

  private let makeEpoch: @Sendable (TopicSettings) -> TopicEpoch

  /// - Parameters:
  ///   - kept: the charge for the topic itself; nil to charge the broker's own account.
  ///   - storage: its state on disk; nil for a topic that is in memory only.
  ///   - makeEpoch: makes an empty epoch with a new number, for the present settings; called now and whenever the topic starts over.
  init(
    name: String, settings: TopicSettings, limits: TopicLimits, memory: MemoryWatch? = nil,
    kept: KeptAccount.Charge? = nil, storage: StoreTopicState? = nil,
    makeEpoch: @escaping @Sendable (TopicSettings) -> TopicEpoch
  ) {
    self.name = name
    effective = Mutex(settings)
    paced = Atomic(settings.flow != .free)
    window = limits.producerWindow
    self.memory = memory
    let kept = kept ?? memory?.accounts.broker.take(Self.bytes(of: name), isPlain: true)
    self.kept = kept
    self.makeEpoch = makeEpoch
    self.storage = storage
    state = Mutex(
      State(
        epoch: makeEpoch(settings),
        producers: ProducerTable(limits: limits.producerTable, isKept: storage != nil, kept: kept),
        cursors: CursorTable(limits: limits.cursorTable, isKept: storage != nil, kept: kept),
        isConnected: settings.connect == .immediate, strategy: settings.strategy,
        tail: storage.map { UncommittedTail($0.birthExtent, commitBytes: $0.commitBytes, clock: $0.clock) }))
  }

  /// Bytes that a topic of that name keeps besides records, cursors, groups and producers.
  static func bytes(of name: String) -> Int { KeptMemory.topic + 3 * name.utf8.count }

  /// The account to which objects are charged that the topic keeps for a client; nil if memory isn't watched.
  func keeper(_ account: KeptAccount?) -> KeptAccount? { memory.map { account ?? $0.accounts.broker } }

  /// The present epoch.
  package var epoch: TopicEpoch { state.withLock { $0.epoch } }

  /// Complete: no setting is nil. Changed by ``adopt(_:completed:isExact:)`` and ``change(_:now:wallClock:)``.
  package var settings: TopicSettings { effective.withLock { $0 } }

  /// Whether producers follow subscribers. Cheap enough to read for each batch.
  package var isPaced: Bool { paced.load(ordering: .relaxed) }

  /// Replaces the settings. With the lock held.
  func apply(_ settings: TopicSettings, to state: inout State) {
    effective.withLock { $0 = settings }
    state.strategy = settings.strategy
    paced.store(settings.flow != .free, ordering: .relaxed)
  }

  package var isDurable: Bool { storage != nil }

  /// Whether records are acknowledged or delivered before they are stored.
  package var isUnsaved: Bool { storage.map { !$0.isSynchronous } ?? true }

  /// Whether another node may read new records once for several of its clients: the topic then doesn't use the number of subscribers and their demand.
  package var isShareable: Bool {
    let settings = settings
    guard settings.flow == .free, settings.compact != true, settings.scope == .forever else { return false }
    return switch settings.connect {
    case .immediate, .manual: true
    case .auto, .autoStay, nil: false
    }
  }

  /// Whether producers' grants are limited by subscribers or by the disk.
  var isMetered: Bool { isPaced || storage != nil }

  /// Appends a checked batch and wakes the loops with attached streams. From any loop.
  ///
  /// - Parameters:
  ///   - epoch: the epoch that the producer knows.
  ///   - isSource: whether the publication is a source's. If ``startsSourcesAnew`` is true, a batch for an earlier epoch is refused.
  ///   - used: the part of the producer's grants that the batch takes.
  ///   - ticket: the ticket of a producer with an ID.
  ///   - needsSubscriber: whether the batch is refused while the topic has no subscriber.
  package func append(
    _ batch: UnsafeRawBufferPointer, count: UInt32, at milliseconds: Int64, in epoch: TopicEpoch,
    isSource: Bool = false, using used: PublishingBudget.Allowance, by ticket: ProducerTable.Ticket? = nil,
    needsSubscriber: Bool = false
  ) -> AppendResult {
    if epoch.newest != nil, let fault = unsafe keyRequired(by: batch) {
      noteUsed(used)
      return .unfit(fault)
    }
    var commitDelay: Duration?
    let (result, loopStates): (AppendResult, [TopicLoopState]) = state.withLock { state in
      // The connection has already subtracted it from the publication's grants, even if the batch is refused.
      state.budget.spend(used)
      if let fault = Self.refusal(state, epoch, name) { return (.refused(fault), []) }
      if needsSubscriber, state.presentSubscriptions == 0 { return (.unfit(.noResponders(on: name)), []) }
      if let ticket, !state.producers.isCurrent(ticket) { return (.refused(.fenced(on: name)), []) }
      if isSource, epoch !== state.epoch, startsSourcesAnew { return (.refused(.startedOver(name)), []) }
      if let ticket { _ = state.producers.advance(ticket, by: UInt64(count)) }
      if let storage {
        return unsafe store(batch, count, milliseconds, ticket, storage, &state, &commitDelay)
      }
      let first = unsafe enter(batch, count: Int(count), at: milliseconds, &state)
      return (.appended(lastOffset: first + UInt64(count) - 1), state.loopStates)
    }
    for loopState in loopStates { loopState.wake() }
    if let commitDelay { storage?.service.enqueue(self, within: commitDelay) }
    return result
  }

  /// Appends a batch to a durable topic, with the lock held. With `sync` always, no subscriber gets the batch before it is on disk.
  ///
  /// - Parameter commitDelay: receives the delay with which the caller must request a commit, if one is needed.
  private func store(
    _ batch: UnsafeRawBufferPointer, _ count: UInt32, _ milliseconds: Int64,
    _ ticket: ProducerTable.Ticket?, _ storage: StoreTopicState, _ state: inout State,
    _ commitDelay: inout Duration?
  ) -> (AppendResult, [TopicLoopState]) {
    tell(milliseconds, &state)
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
    unsafe enter(batch, count: Int(count), at: milliseconds, &state)
    return (result, state.loopStates)
  }

  /// Makes records visible to subscribers. With the lock held.
  ///
  /// - Returns: the offset of the first record.
  @discardableResult
  func enter(
    _ records: UnsafeRawBufferPointer, count: Int, at milliseconds: Int64, _ state: inout State
  ) -> UInt64 {
    if let newest = state.epoch.newest {
      // Before the log: a subscriber that has read these records up to a head of the log continues after that head.
      unsafe newest.append(records, at: milliseconds, keepingFrom: keepNewestFrom(state))
    }
    return unsafe state.epoch.log.append(
      records, count: count, at: milliseconds, keepingFrom: keepInMemoryFrom(state))
  }

  /// Sets the terminal event after all records appended so far. From any loop.
  ///
  /// - Parameters:
  ///   - epoch: the epoch that the producer knows.
  ///   - producer: the ID of the producer that ends the topic; 0 for a producer without one.
  ///   - ticket: the producer's ticket.
  ///   - isSource: as in ``append(_:count:at:in:isSource:using:by:needsSubscriber:)``.
  /// - Returns: the reason if the topic has ended already, unless this producer has ended it.
  package func end(
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
  /// - Returns: the loop states to notify of the end.
  package func end(_ ending: Complete.Ending, by producer: UInt64 = 0, _ state: inout State)
    -> [TopicLoopState]
  {
    if state.tail != nil {
      // Subscribers and producers are notified when the ending is on disk.
      state.tail?.end(ending, by: producer)
      return []
    }
    state.epoch.end(ending)
    state.endedBy = producer
    if settings.scope == .whileConnected { startOver(&state) }
    return state.loopStates
  }

  /// Detaches all streams and drops the records. From any loop; the registry has removed the topic already.
  package func delete() {
    let (epoch, loopStates) = state.withLock { state in
      state.departure = .deleted
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

  /// Stops accepting records, because another node is about to serve the topic. From any loop; the registry has removed it already.
  package func beginLeaving() {
    state.withLock { if $0.departure == nil { $0.departure = .leaving } }
  }

  /// Ends all streams, because another node serves the topic. From any loop; the registry has removed it already.
  package func leave() {
    let loopStates: [TopicLoopState] = state.withLock { state in
      guard !state.isGone else { return [] }
      state.departure = .moved
      state.quota?.gone()
      state.quota = nil
      return state.loopStates
    }
    notify(loopStates)
  }

  /// The reason why nothing can be published to `epoch`; nil if records can.
  package static func refusal(_ state: State, _ epoch: TopicEpoch, _ name: String) -> Fault? {
    if let departure = state.departure { return departure.fault(of: name) }
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

  /// Replaces the present epoch with an empty one. Called with the lock held.
  func startOver(_ state: inout State) {
    let former = state.epoch.condition
    if former == .open { state.epoch.supersede() }
    state.formerlyDropped.add(state.epoch.dropped)
    state.epoch = makeEpoch(settings)
    state.presentSubscriptions = 0
    state.firstSubscribedAt = nil
    switch settings.connect {
    case .auto, .autoStay: state.isConnected = false
    // The end of an epoch undoes a CONNECT; the departure of the last subscriber doesn't.
    case .manual: if former == .ended { state.isConnected = false }
    case .immediate, nil: break
    }
    // Members of these groups continue with the previous epoch.
    state.groups = [:]
    state.lastSubscriberOffset = state.epoch.log.head
  }

  /// Counts a record that the broker itself has published. From any loop.
  func published(bytes: Int) {
    state.withLock { $0.traffic.received(1, bytes: bytes) }
  }

  // MARK: Loop states

  /// The state of this topic on `loop`, created on first use. On that loop only.
  package func loopState(on loop: TopicLoop) -> TopicLoopState {
    state.withLock { state in
      if let loopState = state.loopStates.first(where: { $0.loop === loop }) { return loopState }
      let loopState = TopicLoopState(topic: self, loop: loop)
      state.loopStates.append(loopState)
      return loopState
    }
  }

  /// Removes a loop state without attached streams. On its loop only.
  package func remove(_ loopState: TopicLoopState) {
    state.withLock { state in
      guard let index = state.loopStates.firstIndex(where: { $0 === loopState }) else { return }
      state.loopStates.remove(at: index)
      state.traffic.add(loopState.traffic)
    }
  }

  /// The present loop states. From any loop.
  package var loopStates: [TopicLoopState] { state.withLock { $0.loopStates } }

  /// Raises the state version and wakes the loops, so that attached streams see a change besides records.
  package func notify(_ loopStates: [TopicLoopState]) {
    guard !loopStates.isEmpty else { return }
    stateVersion.add(1, ordering: .releasing)
    for loopState in loopStates { loopState.wake() }
  }

  package var isDeleted: Bool { state.withLock { $0.isDeleted } }

  /// Whether the topic was deleted, or is served by another node, so that its streams have ended.
  package var isGone: Bool { state.withLock { $0.isGone } }

  /// The error with which its streams end; nil while they continue.
  package var departureFault: Fault? {
    state.withLock { $0.departure }.flatMap { $0.isOver ? $0.fault(of: name) : nil }
  }
}
