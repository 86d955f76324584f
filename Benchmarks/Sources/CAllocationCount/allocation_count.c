// Counts the calls of the heap's functions in the program that links this.
//
// A program's own definition of malloc takes the place of the C library's for every library it loads, so the Swift runtime's
// objects are counted like everything else. The definitions here pass on to glibc's own entry points, which stay what they
// are, as does free. While counting is off they cost one load and a branch.

#include "CAllocationCount.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_bool is_counting;
static _Atomic uint64_t count;

void allocation_count_enable(bool enabled) {
  atomic_store(&is_counting, enabled);
}

uint64_t allocation_count(void) {
  return atomic_load(&count);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEAP_IS_TAKEN 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HEAP_IS_TAKEN)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static inline void note(void) {
  if (atomic_load_explicit(&is_counting, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
  }
}

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  note();
  return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
  note();
  return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  int before = errno;
  void *block = memalign(alignment, size);
  errno = before;
  if (block == NULL) return ENOMEM;
  *result = block;
  return 0;
}

bool allocation_count_is_available(void) { return true; }

#else

bool allocation_count_is_available(void) { return false; }

#endif
