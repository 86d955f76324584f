import Synchronization

/// A mutex beside the fields that it guards.
///
/// For fields that hold what isn't `Sendable`, subscribers and subscriptions above all, which a `Mutex` of a value wouldn't let out.
struct Guard: ~Copyable {
  private let mutex = Mutex<Void>(())

  /// Runs `body` alone. It must be short and call nothing of the user's, which releasing an object may do too.
  @inline(__always)
  borrowing func locked<Result>(_ body: () -> Result) -> Result {
    var result: Result?
    mutex.withLock { _ in result = body() }
    return unsafe result.unsafelyUnwrapped
  }
}
