import ReactiveCore
import Synchronization

/// All that a subscriber has asked for since it subscribed: a sum that only grows, from any thread.
///
/// Cumulative because the wire's grants are. The sum saturates to unlimited where Combine's demand would, and unlimited stays.
struct RequestedTotal: ~Copyable {
  /// As on the wire: no limit.
  static let unlimited = UInt64.max

  private let sum = Atomic<UInt64>(0)

  var value: UInt64 { sum.load(ordering: .acquiring) }

  func add(_ demand: Subscribers.Demand) {
    var old = sum.load(ordering: .relaxed)
    while true {
      let new = Self.sum(old, demand)
      if new == old { return }
      let (exchanged, found) = sum.weakCompareExchange(
        expected: old, desired: new, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed)
      if exchanged { return }
      old = found
    }
  }

  private static func sum(_ old: UInt64, _ demand: Subscribers.Demand) -> UInt64 {
    guard old != unlimited, let more = demand.max else { return unlimited }
    let sum = old + UInt64(more)
    return sum > UInt64(Int.max) ? unlimited : sum
  }
}
