import Glibc
import SluiceClient
import Synchronization

/// Threads for blocking work: reading standard input, writing standard output.
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

/// Lets one thread wait for another.
// Unchecked: made for use from several threads.
@safe
final class Semaphore: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() {
    unsafe sem_init(semaphore, 0, 0)
  }

  deinit {
    unsafe sem_destroy(semaphore)
    unsafe semaphore.deallocate()
  }

  /// Lets one call of `wait()` return, one that comes later included.
  func signal() {
    unsafe sem_post(semaphore)
  }

  func wait() {
    while unsafe sem_wait(semaphore) != 0 {}
  }

  /// Waits at most about so long.
  func wait(milliseconds: Int) {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    let nanoseconds = time.tv_nsec + milliseconds % 1000 * 1_000_000
    time.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    time.tv_nsec = nanoseconds % 1_000_000_000
    unsafe sem_timedwait(semaphore, &time)
  }
}

/// Blocks a thread of the program until a loop answers.
enum Waiting {
  private final class Answer<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, ClientError>?>(nil)
    let arrived = Semaphore()
  }

  /// Calls `ask` with the callback to answer, and returns the answer. Never on the loop that has to give it.
  static func answer<Value: Sendable>(
    _ ask: (@escaping @Sendable (Result<Value, ClientError>) -> Void) -> Void
  ) throws(ClientError) -> Value {
    let answer = Answer<Value>()
    ask { result in
      answer.result.withLock { $0 = result }
      answer.arrived.signal()
    }
    while true {
      answer.arrived.wait()
      if let result = answer.result.withLock({ $0 }) { return try result.get() }
    }
  }
}

/// Lets several closures share a noncopyable value.
final class Shared<Value: ~Copyable & Sendable>: Sendable {
  let value: Value

  init(_ value: consuming Value) {
    self.value = value
  }
}

/// Nanoseconds of a clock that never goes back.
enum MonotonicClock {
  static var now: UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }
}
