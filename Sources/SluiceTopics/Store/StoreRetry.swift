import SluiceIO

/// How long to wait before failed commits are tried again: twice as long each time, up to a limit.
struct StoreRetry {
  private static let first = Duration.milliseconds(100)
  private static let longest = Duration.seconds(2)

  private var delay = first

  /// Returns the next delay.
  mutating func next() -> Duration {
    defer { delay = min(delay * 2, Self.longest) }
    return delay
  }

  /// Something was stored.
  mutating func reset() { delay = Self.first }
}
