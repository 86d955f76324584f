/// A histogram of durations with bounds at powers of two.
public struct Histogram: Hashable, Sendable {
  /// `counts[n]` counts durations below ``bound(of:)`` of n and not below that of n - 1; the last one counts all longer ones.
  public private(set) var counts = [UInt64](repeating: 0, count: Self.buckets)
  /// The sum of all durations, in nanoseconds.
  public private(set) var sum: UInt64 = 0

  /// From 1 µs to some 9 minutes.
  public static let buckets = 30

  public init() {}

  public var count: UInt64 { counts.reduce(0, &+) }

  /// The upper bound of a bucket in nanoseconds; all ones for the last bucket.
  public static func bound(of bucket: Int) -> UInt64 { bucket >= buckets - 1 ? .max : 1024 << UInt64(bucket) }

  public mutating func add(_ nanoseconds: UInt64) {
    let bucket = nanoseconds < 1024 ? 0 : min(64 - nanoseconds.leadingZeroBitCount - 10, Self.buckets - 1)
    counts[bucket] &+= 1
    sum &+= nanoseconds
  }

  public mutating func add(_ other: Histogram) {
    for bucket in counts.indices { counts[bucket] &+= other.counts[bucket] }
    sum &+= other.sum
  }

  /// The bound below which `share` (0...1) of the durations are, in nanoseconds; 0 for an empty histogram.
  public func quantile(_ share: Double) -> UInt64 {
    let wanted = (Double(count) * share).rounded(.up)
    var seen: UInt64 = 0
    for bucket in counts.indices {
      seen &+= counts[bucket]
      if seen > 0, Double(seen) >= wanted { return Self.bound(of: bucket) }
    }
    return 0
  }
}
