// Checksums of stored batches, as Debian's libxxhash-dev has them: all of it inline, so that nothing needs to be linked.
#ifndef SLUICE_CXXHASH_SHIM_H
#define SLUICE_CXXHASH_SHIM_H

#define XXH_INLINE_ALL
#include <xxhash.h>

// The library's own names are macros then, which an importer of the module can't see.
static inline uint64_t xxh3_64bits(const void *bytes, size_t count, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

#endif
