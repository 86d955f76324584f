// Intercepts the system calls with which the test program and its libraries write to files. Makes the n-th call fail, and records writes
// and syncs. Linked into a program, it replaces libc's functions of the same names. Calls on files that aren't watched go to the kernel
// unchanged.
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
  FAULTY_SYNCED_WRITE = 32,  // a write to a file opened for synchronous writes
};

enum faulty_mode {
  FAULTY_REFUSED,    // fails without effect
  FAULTY_PARTIAL,    // writes half of the bytes and returns that; other calls fail
  FAULTY_DONE,       // executes the call, but returns an error
  FAULTY_DONE_ONCE,  // the same for the first call; then all writes fail
};

// Watches files that are opened later with a path that starts with this prefix. Returns the number of the watch, from 0; or -1 if there are
// too many.
int faulty_watch(const char *prefix);
void faulty_unwatch(int watch);

// Skips some calls of these kinds, then makes `count` calls fail. Replaces the former rule.
void faulty_fail(int watch, int calls, int64_t skipped, int64_t count, int error, enum faulty_mode mode);
void faulty_heal(int watch);
// Limits the disk space of all files in the watched directory to that many bytes; 0 for no limit. A write beyond the limit is done in part, or
// fails with ENOSPC.
void faulty_limit(int watch, int64_t bytes);
// The number of calls of these kinds so far.
int64_t faulty_calls(int watch, int calls);
// The number of failed calls so far.
int64_t faulty_failures(int watch);

struct faulty_event {
  enum faulty_call call;
  // A write that was executed, or a sync that wasn't, and that returned an error.
  int has_failed;
  // The last part of the file's path.
  const char *name;
  // The position of a write, or a truncated file's length.
  int64_t offset;
  int64_t count;
  const uint8_t *bytes;
};

// Starts recording executed writes and truncations, and syncs.
void faulty_record(int watch);
int64_t faulty_event_count(int watch);
// Valid until the watch ends.
struct faulty_event faulty_event_at(int watch, int64_t index);

#endif
