/// The records of one producer that have arrived somewhere, and the longest time between two of them.
struct ClusterArrivals: Sendable {
  /// The sequence after the last one.
  private(set) var next: UInt64 = 0
  private var last: ContinuousClock.Instant?
  private var longest = 0.0

  mutating func arrive(_ sequence: UInt64, at time: ContinuousClock.Instant = .now) {
    next = max(next, sequence + 1)
    if let last { longest = max(longest, (time - last).inSeconds) }
    last = time
  }

  /// Starts measuring gaps.
  mutating func restart(at time: ContinuousClock.Instant = .now) {
    last = time
    longest = 0
  }

  /// The longest time without a record since measuring started, until `time`.
  func longestGap(at time: ContinuousClock.Instant = .now) -> Double {
    max(longest, last.map { (time - $0).inSeconds } ?? 0)
  }
}

extension Duration {
  var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
