import Glibc

/// Threads for what blocks: reading standard input, writing standard output.
enum Threads {
  private final class Body {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
      self.run = run
    }
  }

  /// Runs `body` on a thread of its own, which ends with it or with the process.
  ///
  /// Signals are blocked in the main thread before this is called for the first time, and so in every thread.
  static func start(_ body: @escaping @Sendable () -> Void) {
    let context = Unmanaged.passRetained(Body(body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { context in
        Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
        return nil
      }, context.toOpaque())
    precondition(code == 0, "the system has no thread left")
    pthread_detach(thread)
  }
}
