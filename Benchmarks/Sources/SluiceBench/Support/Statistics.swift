/// Medians and percentiles of small sets of measurements.
enum Statistics {
  /// The middle value, or the mean of the two in the middle. Nil for an empty set.
  static func median(_ values: [Double]) -> Double? {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }

  /// The smallest of `sorted` that at least `share` (0...1) of all values do not exceed: nearest rank.
  static func percentile<Value>(_ share: Double, ofSorted sorted: [Value]) -> Value? {
    guard !sorted.isEmpty else { return nil }
    let rank = (share * Double(sorted.count)).rounded(.up)
    return sorted[min(max(Int(rank) - 1, 0), sorted.count - 1)]
  }
}
