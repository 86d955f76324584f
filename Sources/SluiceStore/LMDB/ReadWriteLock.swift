import Glibc

/// Held by any number of users, or by one who changes what it guards. A user may take it again while it holds it.
// @unchecked: the system's own lock.
final class ReadWriteLock: @unchecked Sendable {
  private let lock: UnsafeMutablePointer<pthread_rwlock_t>

  init() {
    lock = .allocate(capacity: 1)
    pthread_rwlock_init(lock, nil)
  }

  deinit {
    pthread_rwlock_destroy(lock)
    lock.deallocate()
  }

  func lockForUse() { pthread_rwlock_rdlock(lock) }

  func lockForChange() { pthread_rwlock_wrlock(lock) }

  func unlock() { pthread_rwlock_unlock(lock) }
}
