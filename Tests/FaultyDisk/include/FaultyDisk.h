// Stands between the test program (with the libraries that it uses) and the system's calls that write to files: lets the n-th one fail, and
// records what was written and synced. Linked into a program it takes the place of libc's functions of the same names. Calls that concern
// no watched file go to the kernel as they are.
#ifndef FAULTY_DISK_H
#define FAULTY_DISK_H

#include <stdint.h>
#include <sys/types.h>

// Kinds of calls, as bits.
enum faulty_call {
  FAULTY_WRITE = 1,          // write, writev, pwrite, pwritev
  FAULTY_SYNC = 2,           // fsync, fdatasync, msync
  FAULTY_TRUNCATE = 4,       // ftruncate
  FAULTY_OPEN = 8,           // open
  FAULTY_MAP = 16,           // mmap
  FAULTY_SYNCED_WRITE = 32,  // a write that is on disk when it returns, to a file that was opened for that
};

enum faulty_mode {
  FAULTY_REFUSED,    // nothing is done
  FAULTY_PARTIAL,    // a write takes half of the bytes and says so; other calls are refused
  FAULTY_DONE,       // it is done, and yet an error is returned
  FAULTY_DONE_ONCE,  // so for the first, and then all writes are refused
};

// Watches the files that are opened from now on with a path that begins like this. Returns a number for it, from 0; or -1 when there are too
// many.
int faulty_watch(const char *prefix);
void faulty_unwatch(int watch);

// Of the calls of these kinds, skips some and lets `count` fail from then on, again and again. It replaces what was said before.
void faulty_fail(int watch, int calls, int64_t skipped, int64_t count, int error, enum faulty_mode mode);
void faulty_heal(int watch);
// Lets the disk have so many bytes for all files of the directory that is watched; 0 for no limit. What goes beyond is written as far as there
// is room, or refused with ENOSPC.
void faulty_limit(int watch, int64_t bytes);
// Calls of these kinds so far.
int64_t faulty_calls(int watch, int calls);
// Calls that failed so far.
int64_t faulty_failures(int watch);

struct faulty_event {
  enum faulty_call call;
  // A write that was done, or a sync that wasn't, and that was said to have failed.
  int has_failed;
  // The last part of the file's path.
  const char *name;
  // Where a write went; a truncated file's length.
  int64_t offset;
  int64_t count;
  const uint8_t *bytes;
};

// Begins to record writes and truncations that took place, and syncs.
void faulty_record(int watch);
int64_t faulty_event_count(int watch);
// Valid until the watch ends.
struct faulty_event faulty_event_at(int watch, int64_t index);

#endif
