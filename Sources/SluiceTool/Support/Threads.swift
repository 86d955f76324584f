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
    let context = unsafe Unmanaged.passRetained(Body(body))
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread, nil,
      { context in
        unsafe Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
        return nil
      }, unsafe context.toOpaque())
    precondition(code == 0, "the system has no thread left")
    pthread_detach(thread)
  }
}
