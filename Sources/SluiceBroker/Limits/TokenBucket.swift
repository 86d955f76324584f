import SluiceIO

/// So much a second, and what was saved up of it, at most a quarter of a second's worth. A value: the time is passed in.
///
/// What was taken can't be taken again before as much has come in; whoever has used more than there was leaves a debt.
struct TokenBucket: Sendable {
  private let rate: Double
  private let most: Double
  private var level: Double
  private var time: MonotonicTime

  /// Full.
  ///
  /// - Parameter rate: a second, at least 1.
  init(perSecond rate: Int, at time: MonotonicTime) {
    self.rate = Double(max(rate, 1))
    most = max(self.rate / 4, 1)
    level = most
    self.time = time
  }

  /// What may be used now; below zero for a debt.
  mutating func room(at now: MonotonicTime) -> Double {
    if now > time {
      level = min(most, level + Double((now - time).clampedNanoseconds) / 1e9 * rate)
      time = now
    }
    return level
  }

  /// Takes up to so many, and leaves half of what there is for others; 0 when there is none.
  mutating func take(_ wanted: UInt64, at now: MonotonicTime) -> UInt64 {
    let room = room(at: now)
    guard room >= 1 else { return 0 }
    let taken = min(Double(wanted), max(room / 2, 1).rounded(.down))
    level -= taken
    return UInt64(taken)
  }

  /// So many were used, whether there were as many or not.
  mutating func spend(_ count: UInt64) { level -= Double(count) }

  /// So many were taken and not used.
  mutating func giveBack(_ count: UInt64) { level = min(most, level + Double(count)) }

  /// How long it takes until a part is there that is worth it.
  func wait(at now: MonotonicTime) -> Duration {
    let missing = max(most / 4, 1) - level
    return missing > 0 ? .seconds(min(missing / rate, 3600)) : .zero
  }

  var isFull: Bool { level >= most }
}
