import Synchronization

/// A mutex beside the fields it guards, which need not be `Sendable`; each owner says which they are.
struct Lock: ~Copyable {
  private let mutex = Mutex<Void>(())

  /// Runs the body alone. The body must be short and call nothing of the user's, releases of objects
  /// included.
  borrowing func withLock<Result>(_ body: () -> Result) -> Result {
    var result: Result?
    mutex.withLock { _ in result = body() }
    return unsafe result.unsafelyUnwrapped
  }
}
