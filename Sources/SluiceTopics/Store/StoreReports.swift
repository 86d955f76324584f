import SluiceIO
import SluiceStore
import SluiceWire

/// What the operator is told while a store fails: that it fails, once for each kind of failure; at an interval that producers wait; and that it takes records
/// again.
struct StoreReports {
  /// How often waiting producers are reported.
  private static let interval = Duration.seconds(60)

  private let health: StoreHealth
  /// When waiting producers are reported next; nil while the store works.
  private var next: MonotonicTime?

  init(_ health: StoreHealth) {
    self.health = health
  }

  /// Nothing can be stored.
  mutating func failed(_ error: StoreError, at now: MonotonicTime) -> StoreEvent? {
    guard health.failed(error, now: now) else { return nil }
    next = next ?? now
    return .failed(message: error.message, isFull: error.kind == .full)
  }

  /// Something was stored, or the store says that it takes records.
  mutating func recovered() -> StoreEvent? {
    guard health.recovered() else { return nil }
    next = nil
    return .recovered
  }

  /// Time has passed.
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
