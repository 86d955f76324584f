#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/// Starts or stops counting. Not meant to be called from several threads.
void allocation_count_enable(bool enabled);

/// How many blocks all threads have asked the heap for while counting was on.
uint64_t allocation_count(void);

/// Whether this program counts at all: it needs glibc, and a heap that no sanitizer has taken over.
bool allocation_count_is_available(void);

#endif
