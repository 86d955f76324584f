import Glibc
import SluiceClient
import SluiceIO
import Synchronization

extension Threads {
  /// Runs `body` on a thread of its own, for blocking work; the thread ends with it or with the process.
  static func start(_ body: @escaping @Sendable () -> Void) {
    precondition(detach(name: "sluice", body) == 0, "the system has no thread left")
  }
}

/// Lets one thread wait for another.
// Unchecked: POSIX lets all threads use a semaphore concurrently, and it is destroyed with its last reference.
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

  /// Lets one present or later call of `wait()` return.
  func signal() {
    unsafe sem_post(semaphore)
  }

  func wait() {
    while unsafe sem_wait(semaphore) != 0 {}
  }

  /// Waits for at most about this time.
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

  /// Calls `ask` with a callback, and returns the callback's result. Not on the loop that calls it.
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
