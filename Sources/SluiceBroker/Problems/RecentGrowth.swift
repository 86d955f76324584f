/// How much counters have grown within the last minute.
///
/// A value without a clock. Each look begins with ``begin()``; counters that aren't asked for until the next look are forgotten.
struct RecentGrowth<Key: Hashable & Sendable>: Sendable {
  /// The values of a counter.
  private struct Values {
    /// In order of time; the first is at least a minute old, or the first of all.
    var values: [(time: Int64, value: UInt64)] = []

    mutating func add(_ value: UInt64, at time: Int64) -> UInt64 {
      // A lower count than before belongs to something new.
      if let last = values.last, last.value > value { values = [(time, 0)] }
      // One value each five seconds is kept.
      if values.count > 1, time - values[values.count - 2].time < 5_000 { values.removeLast() }
      values.append((time, value))
      while values.count > 1, values[1].time <= time - 60_000 { values.removeFirst() }
      return value - values[0].value
    }
  }

  private var former: [Key: Values] = [:]
  private var present: [Key: Values] = [:]

  /// Begins another look at all counters.
  mutating func begin() { (former, present) = (present, [:]) }

  /// Takes a counter's value, once a look.
  ///
  /// - Parameter time: in milliseconds.
  /// - Returns: by how much the counter has grown within the last minute.
  mutating func of(_ key: Key, _ value: UInt64, at time: Int64) -> UInt64 {
    var values = former[key] ?? Values()
    defer { present[key] = values }
    return values.add(value, at: time)
  }
}
