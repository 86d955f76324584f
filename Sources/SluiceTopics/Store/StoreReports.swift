import SluiceIO
import SluiceStore
import SluiceWire

/// Decides what is reported to the operator while a store fails: each kind of failure once, waiting producers at an interval, and the recovery.
struct StoreReports {
  /// How often waiting producers are reported.
  private static let interval = Duration.seconds(60)

  private let health: StoreHealth
  /// When waiting producers are reported next; nil while the store works.
  private var next: MonotonicTime?

  init(_ health: StoreHealth) {
    self.health = health
  }

  /// Returns the report of a failure, if it is new.
  mutating func failed(_ error: StoreError, at now: MonotonicTime) -> StoreEvent? {
    guard health.failed(error, now: now) else { return nil }
    next = next ?? now
    return .failed(message: error.message, isFull: error.kind == .full)
  }

  /// Returns the report of a recovery, after a commit was stored or the store has signalled that it accepts records.
  mutating func recovered() -> StoreEvent? {
    guard health.recovered() else { return nil }
    next = nil
    return .recovered
  }

  /// Returns the report of waiting producers, if it is due.
  ///
  /// - Parameters:
  ///   - publishers: how many producers wait.
  ///   - bytes: how many bytes of records wait.
  mutating func waiting(publishers: Int, bytes: Int, at now: MonotonicTime) -> StoreEvent? {
    guard let due = next, due <= now, publishers > 0 || bytes > 0, let failure = health.failure else {
      return nil
    }
    next = now + Self.interval
    return .waiting(
      publishers: publishers, bytes: bytes, isFull: failure.fault.code == .storageFull,
      milliseconds: (now - failure.since).clampedMilliseconds)
  }
}
