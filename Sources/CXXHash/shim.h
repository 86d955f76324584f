// Checksums of stored batches, from Debian's libxxhash-dev. All functions are inline, so no library is linked.
#ifndef SLUICE_CXXHASH_SHIM_H
#define SLUICE_CXXHASH_SHIM_H

#define XXH_INLINE_ALL
#include <xxhash.h>

// The library's own names are then macros, which an importer of the module can't use.
static inline uint64_t xxh3_64bits(const void *bytes, size_t count, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

#endif
