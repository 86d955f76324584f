// Where the core is ours, its lock serves here too: `PortableCombine` passes it on inside this package.
#if canImport(Combine)
  import Synchronization

  /// A mutex beside the fields it guards, which need not be `Sendable`; each owner says which fields they are.
  struct Lock: ~Copyable {
    private let mutex = Mutex<Void>(())

    /// Runs the body alone. The body must be short and must call none of the user's code, releases of objects included.
    borrowing func withLock<Result>(_ body: () -> Result) -> Result {
      var result: Result?
      mutex.withLock { _ in result = body() }
      return unsafe result.unsafelyUnwrapped
    }
  }
#endif
