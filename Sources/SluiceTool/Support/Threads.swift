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
// Unchecked: POSIX lets all threads use a semaphore at a time; it goes with its last reference, when none does.
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
