import SluiceIO
import SluiceWire
import Synchronization

/// What stops a topic's producers, and what subscriptions and groups learn of that.
extension Topic {
  /// From now on producers are stopped by `cause`, or by nothing. With the lock held.
  ///
  /// - Returns: whether ``countHolds()`` has to be called, without the lock.
  func change(hold cause: HoldLog.Cause?, _ state: inout State, at now: MonotonicTime) -> Bool {
    guard cause != state.hold else { return false }
    state.hold = cause
    return holds.withLock { log in
      let wasLong = log.change(to: cause, at: now)
      holdCount.store(log.mark.count, ordering: .releasing)
      return wasLong
    }
  }

  /// The holds that have begun, or may have gone on, since `mark`, which moves to the present. From any thread.
  func holds(since mark: inout HoldLog.Mark) -> [HoldLog.Hold] {
    if !mark.isOpen, holdCount.load(ordering: .acquiring) == mark.count { return [] }
    return holds.withLock { log in
      defer { mark = log.mark }
      return log.holds(since: mark)
    }
  }

  /// Has all subscriptions and groups count the holds that were theirs, those included that rest. From any thread.
  func countHolds() {
    for loopState in loopStates { loopState.countHoldsSoon() }
  }
}
