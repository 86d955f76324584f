/// How much counters have grown within the last minute.
///
/// A value without a clock. Each search begins with ``begin()``; counters that aren't read until the next search are removed.
struct RecentGrowth<Key: Hashable & Sendable>: Sendable {
  /// The values of a counter.
  private struct Values {
    /// In order of time; the first is at least a minute old, or the first one ever added.
    var values: [(time: Int64, value: UInt64)] = []

    mutating func add(_ value: UInt64, at time: Int64) -> UInt64 {
      // A lower value than before means that the counter was recreated and has started from zero.
      if let last = values.last, last.value > value { values = [(time, 0)] }
      // Keeps one value per five seconds.
      if values.count > 1, time - values[values.count - 2].time < 5_000 { values.removeLast() }
      values.append((time, value))
      while values.count > 1, values[1].time <= time - 60_000 { values.removeFirst() }
      return value - values[0].value
    }
  }

  private var former: [Key: Values] = [:]
  private var present: [Key: Values] = [:]

  /// Begins another search.
  mutating func begin() { (former, present) = (present, [:]) }

  /// Adds a counter's value, once per search.
  ///
  /// - Parameter time: in milliseconds.
  /// - Returns: the growth of the counter within the last minute.
  mutating func of(_ key: Key, _ value: UInt64, at time: Int64) -> UInt64 {
    var values = former[key] ?? Values()
    defer { present[key] = values }
    return values.add(value, at: time)
  }
}
