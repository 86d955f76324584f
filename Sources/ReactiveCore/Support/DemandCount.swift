import Synchronization

/// How many values may still be delivered: added to from any thread, taken from by whoever delivers.
@usableFromInline
struct DemandCount: ~Copyable {
  @usableFromInline let count = Atomic<UInt>(0)

  @inlinable
  init() {}

  /// What is asked for and not yet taken.
  @inlinable var value: Subscribers.Demand {
    Subscribers.Demand(rawValue: count.load(ordering: .acquiring))
  }

  @inlinable
  func add(_ more: Subscribers.Demand) {
    if more == .none { return }
    var current = count.load(ordering: .relaxed)
    while true {
      let sum = Subscribers.Demand(rawValue: current) + more
      let (isDone, actual) = count.weakCompareExchange(
        expected: current, desired: sum.rawValue, ordering: .acquiringAndReleasing)
      if isDone { return }
      current = actual
    }
  }

  /// Takes one.
  ///
  /// - Returns: Whether there was one.
  @inlinable
  func take() -> Bool {
    var current = count.load(ordering: .acquiring)
    while current != Subscribers.Demand.unlimited.rawValue {
      if current == 0 { return false }
      let (isDone, actual) = count.weakCompareExchange(
        expected: current, desired: current - 1, ordering: .acquiringAndReleasing)
      if isDone { return true }
      current = actual
    }
    return true
  }
}
