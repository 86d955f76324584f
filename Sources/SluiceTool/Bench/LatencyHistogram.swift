/// How often which time was measured, to about 3 percent, from a nanosecond to centuries.
///
/// Each power of two is divided into 32 equal parts.
struct LatencyHistogram: Sendable {
  private static let parts: UInt64 = 32

  private var counts: [UInt64] = []
  private(set) var total: UInt64 = 0
  private(set) var largest: UInt64 = 0

  mutating func add(_ nanoseconds: UInt64) {
    let index = Self.index(of: nanoseconds)
    if index >= counts.count { counts += Array(repeating: 0, count: index + 1 - counts.count) }
    counts[index] += 1
    total += 1
    largest = max(largest, nanoseconds)
  }

  mutating func merge(_ other: Self) {
    if other.counts.count > counts.count {
      counts += Array(repeating: 0, count: other.counts.count - counts.count)
    }
    for (index, count) in other.counts.enumerated() { counts[index] += count }
    total += other.total
    largest = max(largest, other.largest)
  }

  /// The time that `share` of all measurements don't exceed; 0 when there are none.
  func percentile(_ share: Double) -> UInt64 {
    let rank = max(UInt64((share * Double(total)).rounded(.up)), 1)
    var seen: UInt64 = 0
    for (index, count) in counts.enumerated() {
      seen += count
      if seen >= rank { return min(Self.upperBound(of: index), largest) }
    }
    return largest
  }

  static func index(of value: UInt64) -> Int {
    guard value >= parts else { return Int(value) }
    let shift = 63 - value.leadingZeroBitCount - parts.trailingZeroBitCount
    return (shift + 1) * Int(parts) + Int(value >> UInt64(shift) - parts)
  }

  static func upperBound(of index: Int) -> UInt64 {
    guard index >= Int(parts) else { return UInt64(index) }
    let shift = UInt64(index / Int(parts) - 1)
    return ((UInt64(index % Int(parts)) + parts + 1) << shift) - 1
  }
}
