// What tests ask the allocator, which the toolchain's Glibc module leaves out.
#ifndef SLUICE_CMALLOC_SHIM_H
#define SLUICE_CMALLOC_SHIM_H

#include <malloc.h>

#endif
