// The embedded store's engine, as Debian's liblmdb-dev has it.
#ifndef SLUICE_CLMDB_SHIM_H
#define SLUICE_CLMDB_SHIM_H

#include <lmdb.h>

#endif
