import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

// Grants to a topic's producers, and holds that stop them.
extension Topic {
  /// The most that may be outstanding for one producer.
  package var grantWindow: PublishingBudget.Allowance {
    PublishingBudget.Allowance(records: window, bytes: memory?.window ?? .max)
  }

  /// Whether a producer may get more than it has left, `held`: whatever limits the topic, no grant follows before half of the window is used up. From any
  /// loop.
  package func mayGrant(to held: PublishingBudget.Allowance) -> Bool {
    // Mostly more is left than half of the largest window: then the present one needn't be worked out.
    if held.records > window / 2, held.bytes > (memory?.largestWindow ?? .max) / 2 { return false }
    return PublishingBudget.share(to: held, window: grantWindow) != PublishingBudget.Allowance()
  }

  /// Grants a producer more, and returns the increment. From any loop.
  ///
  /// - Parameters:
  ///   - held: what the producer has left of earlier grants.
  ///   - most: the largest increment; nil for as much as the limits allow.
  package func grant(
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
      // Set before the positions are read: a subscription that moves after the read sees the flag and wakes producers.
      if isMetered { isHeldUp.store(true, ordering: .sequentiallyConsistent) }
      let (bound, cause) = bound(state)
      var more = PublishingBudget.Allowance()
      if cause == nil {
        more = state.budget.grant(to: held, limit: isMetered ? bound.limit : nil, window: window)
      }
      // A producer with grants left isn't stopped, so its request tells nothing of the others.
      let isStopped = held.records == 0 || held.bytes == 0
      return (more, isStopped || cause == nil ? change(hold: cause, &state, at: now) : false)
    }
    if wasLong { countHolds() }
    return more
  }

  /// Records whether the topic, too, stops a producer that has used up its grants and waits for a reason of its own. The producer asks again when its
  /// reason is over, and nothing wakes it before. From any loop.
  package func noteStopped(now: MonotonicTime) {
    let wasLong = state.withLock { state in
      change(hold: bound(state).cause, &state, at: now)
    }
    if wasLong { countHolds() }
  }

  /// Whether producers wait for memory. Durable topics take little of it and never wait, unless the newest record of each key is kept there.
  package var isOutOfMemory: Bool { storage.map { $0.newest != nil } ?? true && memory?.isFull == true }

  /// How far producers may go, and the cause when they are stopped. With the lock held.
  private func bound(_ state: State) -> (bound: FlowBound, cause: HoldLog.Cause?) {
    if let reason = blocked(state) { return (FlowBound(.none), HoldLog.Cause(reason: reason)) }
    guard isMetered else { return (FlowBound(.unlimited), nil) }
    guard let tail = state.tail, let storage else {
      let bound = boundByReaders(state, unread: 0, kept: nil)
      return (bound, bound.limit == .none ? HoldLog.Cause(reason: .subscribers, binding: bound.binding) : nil)
    }
    let room = storage.service.room(besides: tail.waitingBytes)
    guard room > 0 else { return (FlowBound(.none), HoldLog.Cause(reason: .storageBacklog)) }
    // With `sync` always the log contains only what is on disk.
    let unread = storage.isSynchronous ? tail.waitingBytes : 0
    // Late readers find everything on disk; those of a compact topic what is in memory.
    let kept = storage.newest == nil ? UInt64.max : nil
    var bound = isPaced ? boundByReaders(state, unread: unread, kept: kept) : FlowBound(.unlimited)
    guard bound.limit != .none else {
      // Uncommitted records fill the buffer, and the subscribers have taken all committed ones.
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

  /// The reason why nothing is granted, whatever the limits; nil for none. From any loop.
  package var blockedReason: TopicInfo.Publication.WaitReason? { state.withLock { blocked($0) } }

  /// The same with the lock held.
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

  /// Wakes producers after subscriptions of a loop have moved, requested more, or left. From any loop.
  package func readersMoved() {
    guard isHeldUp.exchange(false, ordering: .sequentiallyConsistent) else { return }
    wakeProducers()
  }

  /// Has producers ask for more. From any loop.
  package func wakeProducers() {
    for loopState in loopStates { loopState.wakeProducers() }
  }

  // MARK: Holds

  /// Notes that producers are stopped by `cause` from now on, or not stopped when it is nil. With the lock held.
  ///
  /// - Returns: whether ``countHolds()`` has to be called, without the lock.
  package func change(hold cause: HoldLog.Cause?, _ state: inout State, at now: MonotonicTime) -> Bool {
    guard cause != state.hold else { return false }
    state.hold = cause
    return holds.withLock { log in
      let wasLong = log.change(to: cause, at: now)
      holdCount.store(log.mark.count, ordering: .releasing)
      return wasLong
    }
  }

  /// The holds that have begun or lasted since `mark`, which moves to the present. From any thread.
  package func holds(since mark: inout HoldLog.Mark) -> [HoldLog.Hold] {
    if !mark.isOpen, holdCount.load(ordering: .acquiring) == mark.count { return [] }
    return holds.withLock { log in
      defer { mark = log.mark }
      return log.holds(since: mark)
    }
  }

  /// Has all subscriptions and groups, idle ones included, count the holds that they have caused. From any thread.
  package func countHolds() {
    for loopState in loopStates { loopState.countHoldsSoon() }
  }

  /// Counts what a batch has used of its publication's grants that isn't appended to the topic. From any loop.
  package func noteUsed(_ used: PublishingBudget.Allowance) {
    state.withLock { $0.budget.spend(used) }
  }

  /// A contradiction between the topic's budget and its publications; nil when they agree. For tests.
  ///
  /// Between two turns the budget's outstanding allowance equals the sum of what the publications hold. A topic without publications has nothing
  /// outstanding.
  ///
  /// - Precondition: none of the loops runs at the same time.
  var grantViolation: String? {
    let (outstanding, loopStates) = state.withLock { ($0.budget.outstanding, $0.loopStates) }
    var held = PublishingBudget.Allowance()
    for publication in loopStates.flatMap(\.publications) {
      held.add(publication.held)
    }
    if outstanding != held {
      return "counts \(outstanding) as outstanding where its publications hold \(held)"
    }
    return nil
  }
}
