import ReactiveCore
import SluiceWire
import Synchronization

/// The total that a subscriber has requested since it subscribed. From any thread.
///
/// Cumulative, as the wire's grants are. The sum saturates to unlimited as Combine's demand does, and unlimited stays.
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

/// The totals that a subscription has delivered, received and granted over all its streams. On the loop only.
struct GrantLedger {
  /// Values delivered to the subscriber: records, and the events between them if it wants these.
  private var delivered: UInt64 = 0
  private var events: UInt64 = 0
  private var granted: UInt64 = 0
  /// Records received on all streams, and before the current one, whose grants begin at 0.
  private var received: UInt64 = 0
  private var receivedBefore: UInt64 = 0

  mutating func streamBegins() {
    receivedBefore = received
  }

  mutating func receive(records: UInt32) {
    received += UInt64(records)
  }

  mutating func deliver(records: Int) {
    delivered += UInt64(records)
  }

  mutating func deliverEvent() {
    delivered += 1
    events += 1
  }

  /// Whether records were delivered.
  var hasDelivered: Bool { delivered > events }

  /// Values that may be delivered now.
  func owed(_ requested: UInt64) -> Int {
    requested == RequestedTotal.unlimited ? .max : Int(requested - delivered)
  }

  /// Returns the total that the broker may have sent on the current stream, to be granted now.
  ///
  /// The broker doesn't count events, so the demand that they have used is left out of the grant.
  mutating func grant(_ requested: UInt64, _ prefetch: SubscriptionPlan.Prefetch) -> UInt64 {
    if requested == RequestedTotal.unlimited { return Credit.unlimited }
    granted = max(granted, requested > events ? requested - events : 0)
    if case .keepFull(let count) = prefetch {
      let full = delivered - events + UInt64(max(count, 0))
      // In halves, so that not every record costs a grant.
      if full >= granted + UInt64(max(count / 2, 1)) { granted = full }
    }
    return granted - receivedBefore
  }
}
