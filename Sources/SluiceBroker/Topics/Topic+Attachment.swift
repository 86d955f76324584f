import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

// Who comes and goes, and what that means: a topic is connected by its subscribers, or on demand, and may start over when the last leaves.
extension Topic {
  /// A subscription comes: the epoch that it reads, and where the first one begins that finds what producers buffered meanwhile.
  ///
  /// The caller has its loopState protect everything already, so that nothing is dropped between this and the loopState's first report.
  func attachSubscription(now: MonotonicTime) -> (epoch: TopicEpoch, buffered: UInt64?) {
    let (result, loopStates): ((TopicEpoch, UInt64?), [TopicLoopState]) = state.withLock { state in
      let isFirst = state.presentSubscriptions == 0
      state.subscriptions += 1
      state.presentSubscriptions += 1
      state.firstSubscribedAt = state.firstSubscribedAt ?? now
      state.unusedSince = nil
      let hasChanged = updateConnection(&state)
      let isBuffered = isFirst && isPaced && settings.withoutSubscribers == .buffer
      let buffered = isBuffered ? state.lastSubscriberOffset : nil
      return ((state.epoch, buffered), hasChanged ? state.loopStates : [])
    }
    notify(loopStates)
    return result
  }

  /// Where the first subscriber would begin, for what producers have buffered; nil when there is one, or nothing is buffered.
  var bufferedFrom: UInt64? {
    guard isPaced, settings.withoutSubscribers == .buffer else { return nil }
    return state.withLock { $0.unreadFrom }
  }

  /// A subscription leaves.
  ///
  /// - Parameters:
  ///   - epoch: the one that it was attached to.
  ///   - undone: if it was the last one, what producers buffer begins there, rather than at the head.
  func detachSubscription(from epoch: TopicEpoch, undone: UInt64? = nil) {
    let loopStates: [TopicLoopState] = state.withLock { state in
      state.subscriptions -= 1
      // A epoch that is over has no part in what the present one does.
      guard epoch === state.epoch else { return isPaced ? state.loopStates : [] }
      state.presentSubscriptions -= 1
      var hasChanged = updateConnection(&state)
      if state.presentSubscriptions == 0 {
        state.firstSubscribedAt = nil
        state.lastSubscriberOffset = min(state.epoch.log.head, undone ?? .max)
        if settings.scope == .whileConnected, !state.isDeleted {
          startOver(&state)
          hasChanged = true
        }
      }
      return hasChanged || isPaced ? state.loopStates : []
    }
    notify(loopStates)
  }

  /// What a producer is told when it attaches.
  struct Attachment {
    var epoch: TopicEpoch
    /// Nil for a producer without a number.
    var ticket: ProducerTable.Ticket?
    /// The sequence of the first record that isn't in the log yet.
    var nextSequence: UInt64
    /// It was this producer that ended the topic: it may say so again, and that is all.
    var hasEnded: Bool
  }

  /// A publication comes. Whoever had the producer's number before is told that it has lost it.
  ///
  /// - Throws: why nothing can be published, or not by this producer.
  func attachPublication(
    _ frame: PublishOpen, _ holder: ProducerTable.Holder, now: MonotonicTime
  ) throws(WireError) -> Attachment {
    var watched: [TopicLoopState] = []
    let (result, loser): (Result<Attachment, WireError>, ProducerTable.Loser?) = state.withLock { state in
      let hasEnded = state.isEnded(by: frame.producer)
      if !hasEnded, let fault = Self.refusal(state, state.epoch, name) {
        return (.failure(WireError(fault.code, fault.message)), nil)
      }
      var attachment = Attachment(
        epoch: state.epoch, nextSequence: frame.firstSequence, hasEnded: hasEnded)
      var loser: ProducerTable.Loser?
      if frame.producer != 0 {
        switch state.producers.open(frame.producer, from: frame.firstSequence, holder, now: now) {
        case .opened(let ticket, let next, let before):
          attachment.ticket = ticket
          attachment.nextSequence = next
          loser = before
        case .outrun:
          let fault = Fault.fenced(on: name)
          return (.failure(WireError(fault.code, fault.message)), nil)
        case .noMemory:
          let refusal = memory?.kept.refusal
          return (
            .failure(refusal ?? WireError(.limitReached, "there is no memory for another producer")), nil
          )
        case .full(let limit):
          let message = "topic \(name) has \(limit) producers attached, which is its limit; detach some"
          return (.failure(WireError(.limitReached, message)), nil)
        }
      }
      state.budget.open()
      state.producersLostAt = nil
      if state.producerWatchers > 0 { watched = state.loopStates }
      state.unusedSince = nil
      return (.success(attachment), loser)
    }
    loser?.tell()
    notify(watched)
    return try result.get()
  }

  /// A publication leaves, with what it was granted and hasn't used. What is known of its producer is kept for a while.
  ///
  /// - Parameter hasCompleted: whether it has ended the topic, so that it isn't missed.
  func detachPublication(
    returning held: PublishingBudget.Allowance, _ ticket: ProducerTable.Ticket?, hasCompleted: Bool = false,
    now: MonotonicTime
  ) {
    var watched: [TopicLoopState] = []
    let (loopStates, wasLong): ([TopicLoopState], Bool) = state.withLock { state in
      state.budget.close(returning: held)
      if state.budget.publications == 0, !hasCompleted { state.producersLostAt = now }
      if state.producerWatchers > 0 { watched = state.loopStates }
      // Those that are left find out whether they are stopped when they ask for more, which they do below.
      let wasLong = isMetered || state.budget.publications == 0 ? change(hold: nil, &state, at: now) : false
      if let ticket { state.producers.close(ticket, now: now) }
      return (isMetered ? state.loopStates : [], wasLong)
    }
    notify(watched)
    if wasLong { countHolds() }
    // The others' shares are larger now.
    for loopState in loopStates { loopState.wakeProducers() }
  }

  /// How many are attached, on all loops together.
  var attached: (subscriptions: Int, publications: Int) {
    state.withLock { ($0.subscriptions, $0.budget.publications) }
  }

  // MARK: Connection

  var isConnected: Bool { state.withLock { $0.isConnected } }

  /// Connects or disconnects the topic by request.
  ///
  /// - Throws: ``ErrorCode/unsupported`` when the topic's setting leaves that to its subscribers.
  func connect(_ isConnected: Bool) throws(WireError) {
    guard settings.connect == .manual else {
      throw WireError(
        .unsupported,
        "topic \(name) connects by itself; to connect it by request, create it with connect manual")
    }
    let loopStates = state.withLock { state in
      state.isConnected = isConnected
      return state.loopStates
    }
    notify(loopStates)
  }

  /// - Returns: whether it is connected now and wasn't before, or the reverse.
  private func updateConnection(_ state: inout State) -> Bool {
    let before = state.isConnected
    switch settings.connect {
    case .auto(let count):
      if state.presentSubscriptions >= Int(count) { state.isConnected = true }
      if state.presentSubscriptions == 0 { state.isConnected = false }
    case .autoStay(let count):
      if state.presentSubscriptions >= Int(count) { state.isConnected = true }
    case .immediate, .manual, nil: return false
    }
    return state.isConnected != before
  }

  /// Whether sources publish a new run to each epoch of the topic. When such a topic starts over, the broker ends the publications of its sources.
  var startsSourcesAnew: Bool {
    let settings = settings
    guard settings.scope == .whileConnected else { return false }
    return switch settings.connect {
    case .auto, .autoStay: true
    case .immediate, .manual, nil: false
    }
  }

  // MARK: Demand

  /// The most that one producer may have at a time.
  var grantWindow: PublishingBudget.Allowance {
    PublishingBudget.Allowance(records: window, bytes: memory?.window ?? .max)
  }

  /// What a producer gets, on top of what it has. From any loop.
  ///
  /// - Parameter most: what it may get; nil for as much as there is.
  func grant(
    to held: PublishingBudget.Allowance, atMost most: PublishingBudget.Allowance? = nil, now: MonotonicTime
  ) -> PublishingBudget.Allowance {
    var window = grantWindow
    if let most {
      var reach = held
      reach.add(most)
      window.records = min(window.records, reach.records)
      window.bytes = min(window.bytes, reach.bytes)
    }
    let (more, wasLong) = state.withLock { state -> (PublishingBudget.Allowance, Bool) in
      // Set before the readers are looked at: whoever moves after that look sees it, and wakes us.
      if isMetered { isHeldUp.store(true, ordering: .sequentiallyConsistent) }
      let (bound, cause) = bound(state)
      var more = PublishingBudget.Allowance()
      if cause == nil {
        more = state.budget.grant(to: held, limit: isMetered ? bound.limit : nil, window: window)
      }
      // A producer that has something left isn't stopped, and says nothing of the others.
      let isStopped = held.records == 0 || held.bytes == 0
      return (more, isStopped || cause == nil ? change(hold: cause, &state, at: now) : false)
    }
    if wasLong { countHolds() }
    return more
  }

  /// A producer that has used up its grants may not be granted any for a reason of its own: finds out whether the topic stops it as well. The producer asks
  /// again when its reason is over, and nothing wakes it before. From any loop.
  func noteStopped(now: MonotonicTime) {
    let wasLong = state.withLock { state in
      change(hold: bound(state).cause, &state, at: now)
    }
    if wasLong { countHolds() }
  }

  /// Whether producers wait for memory. What is on disk takes little of it.
  var isOutOfMemory: Bool { storage == nil && memory?.isFull == true }

  /// How far producers may go, and what stops them if they may not go on. With the lock held.
  private func bound(_ state: State) -> (bound: FlowBound, cause: HoldLog.Cause?) {
    if let reason = blocked(state) { return (FlowBound(.none), HoldLog.Cause(reason: reason)) }
    guard isMetered else { return (FlowBound(.unlimited), nil) }
    guard let tail = state.tail, let storage else {
      let bound = boundByReaders(state, unread: 0, kept: nil)
      return (bound, bound.limit == .none ? HoldLog.Cause(reason: .subscribers, binding: bound.binding) : nil)
    }
    let room = storage.service.room(besides: tail.waitingBytes)
    guard room > 0 else { return (FlowBound(.none), HoldLog.Cause(reason: .storageBacklog)) }
    // With `sync` always the log has no more than the disk.
    let unread = storage.isSynchronous ? tail.waitingBytes : 0
    var bound = isPaced ? boundByReaders(state, unread: unread, kept: .max) : FlowBound(.unlimited)
    guard bound.limit != .none else {
      // What fills the buffer is on its way to the disk, and the subscribers have taken all that is there.
      let isWaiting = unread > 0 && bound.binding == FlowBinding(nextOffset: state.epoch.log.head)
      return (
        bound,
        isWaiting
          ? HoldLog.Cause(reason: .storageBacklog)
          : HoldLog.Cause(reason: .subscribers, binding: bound.binding)
      )
    }
    bound.limit = bound.limit.capped(bytes: UInt64(clamping: room))
    return (bound, nil)
  }

  /// Why nothing is granted, whatever the limits.
  private func blocked(_ state: State) -> TopicInfo.Publication.WaitReason? {
    if let fault = storage?.service.refusal ?? state.storeRejection {
      return fault.code == .storageFull ? .storageFull : .storageFailed
    }
    if isOutOfMemory { return .memory }
    return state.isConnected ? nil : .notConnected
  }

  private func boundByReaders(_ state: State, unread: Int, kept: UInt64?) -> FlowBound {
    let log = state.epoch.log
    let situation = FlowSituation(
      head: state.nextOffset, unreadFrom: state.unreadFrom,
      keptBytes: kept ?? UInt64(log.statistics().bytes), lapsedBytes: lapsedBytes(state),
      bytes: { UInt64(log.bytes(from: $0) + unread) })
    return state.strategy.bound(state.readers, situation)
  }

  /// The subscriptions of some loop have moved, asked for more, or left: producers may go on. From any loop.
  func readersMoved() {
    guard isHeldUp.exchange(false, ordering: .sequentiallyConsistent) else { return }
    wakeProducers()
  }

  /// Producers may go on. From any loop.
  func wakeProducers() {
    for loopState in loopStates { loopState.wakeProducers() }
  }
}

extension TopicSettings {
  var retention: Retention {
    func limit(_ value: UInt64?) -> UInt64? { value == Self.unlimited ? nil : value }
    return Retention(
      records: limit(replayRecords), bytes: limit(replayBytes),
      ageMilliseconds: limit(replayAge).map { Int64(clamping: $0) })
  }

  /// These settings, with what they leave open as it is where nothing is said: how much is kept depends on where it is kept.
  var completed: TopicSettings {
    completed(by: BrokerConfiguration.standardTopic(in: storage ?? .memory))
  }
}

extension Fault {
  static func noResponders(on topic: String) -> Fault {
    Fault(
      code: .noResponders,
      message:
        "no subscriber is attached to topic \(topic), so nothing can reply; start one that replies, then ask again"
    )
  }

  static func topicDeleted(_ topic: String) -> Fault {
    Fault(code: .topicDeleted, message: "topic \(topic) was deleted")
  }

  static func fenced(on topic: String) -> Fault {
    Fault(
      code: .producerFenced,
      message:
        "another publication to \(topic) has been opened with this producer's number; only the last one goes on"
    )
  }
}
