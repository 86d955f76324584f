// Makes Swift's `Mutex` visible to the thread sanitizer on Linux: loaded before the program by scripts/sanitize.sh.
//
// The quick ways into and out of a `Mutex` are atomics that the compiler puts into the caller, where the sanitizer sees them. Only
// when threads really meet does the Synchronization library make a system call, and the kernel hands the lock from one to the other:
// nothing that the sanitizer could see, so that it takes what the lock protects for a race. These two stand before the library's
// functions of the same names, call them, and tell the sanitizer what they did.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFTCALL __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

// Of the sanitizer's runtime, where the program has one.
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
