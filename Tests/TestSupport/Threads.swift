import Glibc
import Synchronization

/// Runs the bodies concurrently, each on its own thread, and returns once all have ended.
///
/// The bodies must end by themselves: each of their waits needs a deadline.
///
/// - Throws: the first error in the order of the bodies.
public func concurrently(_ bodies: [@Sendable () throws -> Void]) throws {
  let errors = Mutex<[(Int, any Error)]>([])
  let threads = bodies.enumerated().map { index, body in
    BackgroundThread {
      do {
        try body()
      } catch {
        errors.withLock { $0.append((index, error)) }
      }
    }
  }
  for thread in threads { thread.join() }
  if let first = errors.withLock({ $0.min { $0.0 < $1.0 } }) { throw first.1 }
}

public func concurrently(_ bodies: (@Sendable () throws -> Void)...) throws {
  try concurrently(bodies)
}

/// Runs `body` here and `background` on another thread, and returns once both have ended.
///
/// - Throws: the error of `background`, which is more likely the cause, or else that of `body`.
public func meanwhile<Result>(
  _ background: @escaping @Sendable () throws -> Void, _ body: () throws -> Result
) throws -> Result {
  let failure = Mutex<(any Error)?>(nil)
  let thread = BackgroundThread {
    do {
      try background()
    } catch {
      failure.withLock { $0 = error }
    }
  }
  let result = Swift.Result { try body() }
  thread.join()
  if let failure = failure.withLock({ $0 }) { throw failure }
  return try result.get()
}

/// A thread that runs one closure.
public final class BackgroundThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
      self.run = run
    }
  }

  private let handle: Mutex<pthread_t?>

  public init(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let context = Unmanaged.passRetained(Body(body))
    let code = pthread_create(
      &thread, nil,
      { context in
        Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
        return nil
      }, context.toOpaque())
    precondition(code == 0, "no thread: error \(code)")
    handle = Mutex(thread)
  }

  /// Waits for the end of the closure.
  public func join() {
    let thread = handle.withLock { $0.take() }
    if let thread { pthread_join(thread, nil) }
  }
}

/// A one-time event that other threads can check for.
public final class Flag: Sendable {
  private let raised = Atomic(false)

  public init() {}

  public var isRaised: Bool { raised.load(ordering: .acquiring) }

  public func raise() {
    raised.store(true, ordering: .releasing)
  }
}

/// A value shared by threads.
public final class Shared<Value: Sendable>: Sendable {
  private let content: Mutex<Value>

  public init(_ value: Value) {
    content = Mutex(value)
  }

  public var value: Value { content.withLock { $0 } }

  @discardableResult
  public func update<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
    content.withLock { body(&$0) }
  }
}
