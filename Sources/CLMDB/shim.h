// The embedded store's engine, from Debian's liblmdb-dev.
#ifndef SLUICE_CLMDB_SHIM_H
#define SLUICE_CLMDB_SHIM_H

#include <lmdb.h>

#endif
