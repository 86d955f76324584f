import Glibc
import SluiceStore
import Synchronization

/// Held by any number of users, or by one that changes what it guards. A user may take it again while it holds it.
// @unchecked: the system's own lock.
@safe
final class ReadWriteLock: @unchecked Sendable {
  private let lock: UnsafeMutablePointer<pthread_rwlock_t>
  /// Callers that wait for a change.
  private let changers = Atomic(0)

  init() {
    unsafe lock = .allocate(capacity: 1)
    unsafe pthread_rwlock_init(lock, nil)
  }

  deinit {
    unsafe pthread_rwlock_destroy(lock)
    unsafe lock.deallocate()
  }

  /// Users go first, so that they may take it again; but they give way for a moment, or a change would wait as long as there are any.
  func lockForUse() {
    if changers.load(ordering: .relaxed) > 0 { usleep(500) }
    unsafe pthread_rwlock_rdlock(lock)
  }

  func lockForChange() {
    changers.add(1, ordering: .relaxed)
    unsafe pthread_rwlock_wrlock(lock)
    changers.subtract(1, ordering: .relaxed)
  }

  func unlock() { unsafe pthread_rwlock_unlock(lock) }
}
