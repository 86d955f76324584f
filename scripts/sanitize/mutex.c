// Makes Swift's `Mutex` visible to the thread sanitizer on Linux. scripts/sanitize.sh loads it before the program.
//
// The fast paths of a `Mutex` are atomics that the compiler inlines into the caller, where the sanitizer sees them. Only under
// contention does the Synchronization library make a system call, and the kernel passes the lock from one thread to the other. The
// sanitizer can't see that, and would report the protected data as a race. The two functions here replace the library's functions of
// the same names. They call them, and notify the sanitizer.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFTCALL __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

// Part of the sanitizer's runtime. Null if the program has none.
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

typedef SWIFTCALL void (*Lock)(uint32_t thread, SELF void *mutex);
typedef SWIFTCALL void (*Unlock)(SELF void *mutex);

static void *next(const char *name) {
  void *symbol = dlsym(RTLD_NEXT, name);
  if (!symbol) abort();
  return symbol;
}

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFTCALL void sluice_lock(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFTCALL void sluice_unlock(SELF void *mutex) __asm__(UNLOCK);

SWIFTCALL void sluice_lock(uint32_t thread, SELF void *mutex) {
  static Lock lock;
  Lock found = __atomic_load_n(&lock, __ATOMIC_RELAXED);
  if (!found) {
    found = (Lock)next(LOCK);
    __atomic_store_n(&lock, found, __ATOMIC_RELAXED);
  }
  found(thread, mutex);
  if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFTCALL void sluice_unlock(SELF void *mutex) {
  static Unlock unlock;
  Unlock found = __atomic_load_n(&unlock, __ATOMIC_RELAXED);
  if (!found) {
    found = (Unlock)next(UNLOCK);
    __atomic_store_n(&unlock, found, __ATOMIC_RELAXED);
  }
  if (__tsan_release) __tsan_release(mutex);
  found(mutex);
}
