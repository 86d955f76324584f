// Where the core is ours, `PortableCombine` passes these on inside this package; Apple's Combine doesn't have them.
#if os(macOS) || os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
  import Combine
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

  extension Subscribers.Demand {
    /// Stops the program on a request for no values.
    func assertNonZero(file: StaticString = #file, line: UInt = #line) {
      if self == .none { fatalError("API Violation: demand must not be zero", file: file, line: line) }
    }
  }
#endif
