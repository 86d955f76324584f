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

  /// Whether a producer may get more grants than `held`. In any topic, no grant is made before half of the window is used up. From any loop.
  package func mayGrant(to held: PublishingBudget.Allowance) -> Bool {
    // Usually more than half of the largest window remains. The present window then need not be computed.
    if held.records > window / 2, held.bytes > (memory?.largestWindow ?? .max) / 2 { return false }
    return PublishingBudget.share(to: held, window: grantWindow) != PublishingBudget.Allowance()
  }

  /// Grants a producer more, and returns the increment. From any loop.
  ///
  /// - Parameters:
  ///   - held: the unused part of the producer's earlier grants.
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
      // A producer with grants left isn't stopped, so its request doesn't show whether the others are.
      let isStopped = held.records == 0 || held.bytes == 0
      return (more, isStopped || cause == nil ? change(hold: cause, &state, at: now) : false)
    }
    if wasLong { countHolds() }
    return more
  }

  /// Notes whether the topic, too, stops a producer that has used up its grants and waits for another reason. The producer requests grants again when that
  /// reason ends; nothing wakes it earlier. From any loop.
  package func noteStopped(now: MonotonicTime) {
    let wasLong = state.withLock { state in
      change(hold: bound(state).cause, &state, at: now)
    }
    if wasLong { countHolds() }
  }

  /// Whether producers wait for memory. Durable topics use little memory, so their producers never wait for it, unless the topic is compact and keeps its
  /// newest records there.
  package var isOutOfMemory: Bool { storage.map { $0.newest != nil } ?? true && memory?.isFull == true }

  /// How far producers may go, and the cause if they are stopped. With the lock held.
  private func bound(_ state: State) -> (bound: FlowBound, cause: HoldLog.Cause?) {
    if let reason = blocked(state) { return (FlowBound(.none), HoldLog.Cause(reason: reason)) }
    guard isMetered else { return (FlowBound(.unlimited), nil) }
    guard let tail = state.tail, let storage else {
      let bound = boundByReaders(state, unread: 0, kept: nil)
      return (bound, bound.limit == .none ? HoldLog.Cause(reason: .subscribers, binding: bound.binding) : nil)
    }
    let room = storage.service.room(besides: tail.waitingBytes)
    guard room > 0 else { return (FlowBound(.none), HoldLog.Cause(reason: .storageBacklog)) }
    // With `sync` always, the log contains only records that are on disk.
    let unread = storage.isSynchronous ? tail.waitingBytes : 0
    // Late readers find all records on disk; those of a compact topic find the records in memory.
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

  /// The reason why nothing is granted, regardless of limits; nil for none. From any loop.
  package var blockedReason: TopicInfo.Publication.WaitReason? { state.withLock { blocked($0) } }

  /// As ``blockedReason``, with the lock held.
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

  /// Makes producers request more grants. From any loop.
  package func wakeProducers() {
    for loopState in loopStates { loopState.wakeProducers() }
  }

  // MARK: Holds

  /// Notes that `cause` stops producers, or that they aren't stopped if it is nil. With the lock held.
  ///
  /// - Returns: whether ``countHolds()`` must be called, without the lock.
  package func change(hold cause: HoldLog.Cause?, _ state: inout State, at now: MonotonicTime) -> Bool {
    guard cause != state.hold else { return false }
    state.hold = cause
    return holds.withLock { log in
      let wasLong = log.change(to: cause, at: now)
      holdCount.store(log.mark.count, ordering: .releasing)
      return wasLong
    }
  }

  /// The holds that have begun or lasted since `mark`, which is advanced to the present. From any thread.
  package func holds(since mark: inout HoldLog.Mark) -> [HoldLog.Hold] {
    if !mark.isOpen, holdCount.load(ordering: .acquiring) == mark.count { return [] }
    return holds.withLock { log in
      defer { mark = log.mark }
      return log.holds(since: mark)
    }
  }

  /// Makes all subscriptions and groups, including idle ones, count the holds that they have caused. From any thread.
  package func countHolds() {
    for loopState in loopStates { loopState.countHoldsSoon() }
  }

  /// Counts the grants that a batch has used although it isn't appended to the topic. From any loop.
  package func noteUsed(_ used: PublishingBudget.Allowance) {
    state.withLock { $0.budget.spend(used) }
  }

  /// A contradiction between the topic's budget and its publications; nil if they agree. For tests.
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
