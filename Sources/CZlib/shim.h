// zlib from Debian's zlib1g-dev, with functions for its macros.
#ifndef SLUICE_CZLIB_SHIM_H
#define SLUICE_CZLIB_SHIM_H

#include <zlib.h>

// Raw DEFLATE streams (RFC 1951), without the header and checksum of zlib's own format.

// With the largest window, which can read data compressed with any smaller one.
static inline int sluice_inflate_init(z_stream *stream) {
  *stream = (z_stream){0};
  return inflateInit2(stream, -MAX_WBITS);
}

// With a window of 2 to the power of window_bits, from 9 to 15.
static inline int sluice_deflate_init(z_stream *stream, int level, int window_bits) {
  *stream = (z_stream){0};
  return deflateInit2(stream, level, Z_DEFLATED, -window_bits, 8, Z_DEFAULT_STRATEGY);
}

#endif
