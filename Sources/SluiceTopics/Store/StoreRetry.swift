import SluiceIO

/// The delay before failed commits are retried: doubled each time, up to a limit.
struct StoreRetry {
  private static let first = Duration.milliseconds(100)
  private static let longest = Duration.seconds(2)

  private var delay = first

  /// Returns the next delay.
  mutating func next() -> Duration {
    defer { delay = min(delay * 2, Self.longest) }
    return delay
  }

  /// Resets the delay after a commit was stored.
  mutating func reset() { delay = Self.first }
}
