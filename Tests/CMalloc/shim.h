// Functions of the allocator that tests need and the toolchain's Glibc module omits.
#ifndef SLUICE_CMALLOC_SHIM_H
#define SLUICE_CMALLOC_SHIM_H

#include <malloc.h>

#endif
