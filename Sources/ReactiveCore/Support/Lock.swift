import Synchronization

/// A mutex beside the fields it guards.
///
/// `Mutex<Value>` asks that what goes in and out may change hands between isolation regions. Operators hold the values,
/// subscribers and closures of their users, which need not be `Sendable`, so the lock holds nothing itself; each owner
/// says which of its fields it guards.
@usableFromInline
package struct Lock: ~Copyable {
  @usableFromInline let mutex = Mutex<Void>(())

  @inlinable
  package init() {}

  /// Runs the body alone. The body must be short and call nothing of the user's, releases of objects included.
  @inlinable
  @inline(__always)
  package borrowing func withLock<Result>(_ body: () -> Result) -> Result {
    var result: Result?
    mutex.withLock { _ in result = body() }
    return unsafe result.unsafelyUnwrapped
  }
}
