import Glibc

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
