#define _GNU_SOURCE
#include "FaultyDisk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WATCHES = 64, DESCRIPTORS = 1 << 16, KINDS = 6 };

struct watch {
  char *prefix;
  int64_t calls[KINDS];
  int64_t failures;
  int failing_calls;
  int64_t skipped;
  int64_t count;
  int error;
  enum faulty_mode mode;
  int64_t limit;
  int is_recording;
  struct faulty_event *events;
  int64_t event_count;
  int64_t event_capacity;
};

// A watched file that is open.
struct file {
  int watch;  // from 1; 0 for none
  int is_synced;
  char name[32];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch watches[WATCHES];
static struct file files[DESCRIPTORS];
static atomic_int watch_count;

static struct file *file_of(int descriptor) {
  if (atomic_load(&watch_count) == 0 || descriptor < 0 || descriptor >= DESCRIPTORS) return NULL;
  return files[descriptor].watch ? &files[descriptor] : NULL;
}

int faulty_watch(const char *prefix) {
  int found = -1;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < WATCHES && found < 0; i++) {
    if (watches[i].prefix) continue;
    watches[i] = (struct watch){.prefix = strdup(prefix)};
    found = i;
    atomic_fetch_add(&watch_count, 1);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void faulty_unwatch(int number) {
  struct watch *watch = &watches[number];
  pthread_mutex_lock(&lock);
  for (int i = 0; i < DESCRIPTORS; i++) {
    if (files[i].watch == number + 1) files[i].watch = 0;
  }
  for (int64_t i = 0; i < watch->event_count; i++) {
    free((void *)watch->events[i].name);
    free((void *)watch->events[i].bytes);
  }
  free(watch->events);
  free(watch->prefix);
  *watch = (struct watch){0};
  atomic_fetch_sub(&watch_count, 1);
  pthread_mutex_unlock(&lock);
}

void faulty_fail(int watch, int calls, int64_t skipped, int64_t count, int error, enum faulty_mode mode) {
  pthread_mutex_lock(&lock);
  struct watch *it = &watches[watch];
  it->failing_calls = calls;
  it->skipped = skipped;
  it->count = count;
  it->error = error;
  it->mode = mode;
  pthread_mutex_unlock(&lock);
}

void faulty_heal(int watch) { faulty_fail(watch, 0, 0, 0, 0, FAULTY_REFUSED); }

void faulty_limit(int watch, int64_t bytes) {
  pthread_mutex_lock(&lock);
  watches[watch].limit = bytes;
  pthread_mutex_unlock(&lock);
}

// Of bytes up to `end` in a file, how many the disk has no room for. Under the lock.
static int64_t excess(struct watch *watch, int descriptor, int64_t end) {
  if (watch->limit == 0) return 0;
  struct stat status;
  if (fstat(descriptor, &status) != 0 || end <= status.st_size) return 0;
  int64_t room = watch->limit - (end - status.st_size);
  DIR *directory = opendir(watch->prefix);
  if (!directory) return 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", watch->prefix, entry->d_name);
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) room -= status.st_size;
  }
  closedir(directory);
  return room < 0 ? -room : 0;
}

int64_t faulty_calls(int watch, int calls) {
  int64_t sum = 0;
  pthread_mutex_lock(&lock);
  for (int kind = 0; kind < KINDS; kind++) {
    if (calls & (1 << kind)) sum += watches[watch].calls[kind];
  }
  pthread_mutex_unlock(&lock);
  return sum;
}

int64_t faulty_failures(int watch) {
  pthread_mutex_lock(&lock);
  int64_t failures = watches[watch].failures;
  pthread_mutex_unlock(&lock);
  return failures;
}

void faulty_record(int watch) {
  pthread_mutex_lock(&lock);
  watches[watch].is_recording = 1;
  pthread_mutex_unlock(&lock);
}

int64_t faulty_event_count(int watch) {
  pthread_mutex_lock(&lock);
  int64_t count = watches[watch].event_count;
  pthread_mutex_unlock(&lock);
  return count;
}

struct faulty_event faulty_event_at(int watch, int64_t index) {
  pthread_mutex_lock(&lock);
  struct faulty_event event = watches[watch].events[index];
  pthread_mutex_unlock(&lock);
  return event;
}

// Counts a call; returns whether it has to fail, and how. Under the lock.
static int fails(struct watch *watch, enum faulty_call call, struct watch *how) {
  for (int kind = 0; kind < KINDS; kind++) watch->calls[kind] += call == 1 << kind;
  if (!(watch->failing_calls & call)) return 0;
  if (watch->skipped > 0) {
    watch->skipped--;
    return 0;
  }
  if (watch->count == 0) return 0;
  watch->count--;
  watch->failures++;
  *how = *watch;
  if (watch->mode == FAULTY_DONE_ONCE) {
    how->mode = FAULTY_DONE;
    watch->mode = FAULTY_REFUSED;
    watch->failing_calls |= FAULTY_WRITE | FAULTY_SYNCED_WRITE;
  }
  return 1;
}

// Under the lock.
static void note(struct file *file, enum faulty_call call, int64_t offset, const struct iovec *parts, int part_count,
                 int64_t count, int has_failed) {
  struct watch *watch = &watches[file->watch - 1];
  if (!watch->is_recording) return;
  if (watch->event_count == watch->event_capacity) {
    watch->event_capacity = watch->event_capacity ? 2 * watch->event_capacity : 64;
    watch->events = realloc(watch->events, watch->event_capacity * sizeof(struct faulty_event));
  }
  uint8_t *bytes = malloc(count > 0 ? count : 1);
  int64_t copied = 0;
  for (int i = 0; i < part_count && copied < count; i++) {
    int64_t size = parts[i].iov_len;
    if (size > count - copied) size = count - copied;
    memcpy(bytes + copied, parts[i].iov_base, size);
    copied += size;
  }
  watch->events[watch->event_count++] = (struct faulty_event){
      .call = call,
      .has_failed = has_failed,
      .name = strdup(file->name),
      .offset = offset,
      .count = count,
      .bytes = bytes,
  };
}

// A write at an offset, or at the descriptor's own when it is negative.
static ssize_t system_write(int descriptor, const struct iovec *parts, int count, int64_t offset) {
  if (offset < 0) return syscall(SYS_writev, descriptor, parts, count);
  return syscall(SYS_pwritev, descriptor, parts, count, offset, 0);
}

static ssize_t watched_write(struct file *file, int descriptor, const struct iovec *parts, int count, int64_t offset) {
  struct watch how;
  ssize_t result;
  enum faulty_call call = file->is_synced ? FAULTY_SYNCED_WRITE : FAULTY_WRITE;
  pthread_mutex_lock(&lock);
  int64_t position = offset >= 0 ? offset : lseek(descriptor, 0, SEEK_CUR);
  if (file->watch && fails(&watches[file->watch - 1], call, &how)) {
    result = -1;
    if (how.mode == FAULTY_PARTIAL) {
      struct iovec part = {parts[0].iov_base, count > 1 ? parts[0].iov_len : parts[0].iov_len / 2};
      result = system_write(descriptor, &part, 1, offset);
      if (result > 0) note(file, call, position, &part, 1, result, 0);
    } else {
      if (how.mode == FAULTY_DONE) {
        result = system_write(descriptor, parts, count, offset);
        if (result > 0) note(file, call, position, parts, count, result, 1);
      }
      errno = how.error;
      result = -1;
    }
  } else {
    struct iovec fitting[64];
    int64_t total = 0;
    for (int i = 0; i < count; i++) total += parts[i].iov_len;
    int64_t left = file->watch ? total - excess(&watches[file->watch - 1], descriptor, position + total) : total;
    if (left < total && count <= 64) {
      int whole = 0;
      int64_t sum = 0;
      for (; whole < count && sum < left; whole++) {
        fitting[whole] = parts[whole];
        if (sum + (int64_t)fitting[whole].iov_len > left) fitting[whole].iov_len = left - sum;
        sum += fitting[whole].iov_len;
      }
      parts = fitting;
      count = whole;
    }
    errno = ENOSPC;
    result = count > 0 ? system_write(descriptor, parts, count, offset) : -1;
    if (result > 0 && file->watch) note(file, call, position, parts, count, result, 0);
  }
  int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  struct file *file = file_of(descriptor);
  if (!file) return syscall(SYS_write, descriptor, bytes, count);
  struct iovec part = {(void *)bytes, count};
  return watched_write(file, descriptor, &part, 1, -1);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  struct file *file = file_of(descriptor);
  if (!file) return syscall(SYS_writev, descriptor, parts, count);
  return watched_write(file, descriptor, parts, count, -1);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  struct file *file = file_of(descriptor);
  if (!file) return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
  struct iovec part = {(void *)bytes, count};
  return watched_write(file, descriptor, &part, 1, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
  struct file *file = file_of(descriptor);
  if (!file) return system_write(descriptor, parts, count, offset);
  return watched_write(file, descriptor, parts, count, offset);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
  return pwritev(descriptor, parts, count, offset);
}

static int synced(int descriptor, long number) {
  struct file *file = file_of(descriptor);
  if (!file) return (int)syscall(number, descriptor);
  struct watch how;
  pthread_mutex_lock(&lock);
  int is_failing = fails(&watches[file->watch - 1], FAULTY_SYNC, &how);
  int result = is_failing ? -1 : (int)syscall(number, descriptor);
  int error = is_failing ? how.error : errno;
  note(file, FAULTY_SYNC, 0, NULL, 0, 0, result != 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }

int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

// Which file a map belongs to isn't known: it is passed on.
int msync(void *address, size_t count, int flags) { return (int)syscall(SYS_msync, address, count, flags); }

int ftruncate(int descriptor, off_t count) {
  struct file *file = file_of(descriptor);
  if (!file) return (int)syscall(SYS_ftruncate, descriptor, count);
  struct watch how;
  pthread_mutex_lock(&lock);
  int is_failing = fails(&watches[file->watch - 1], FAULTY_TRUNCATE, &how);
  int result = is_failing ? -1 : (int)syscall(SYS_ftruncate, descriptor, count);
  int error = is_failing ? how.error : errno;
  if (result == 0) note(file, FAULTY_TRUNCATE, count, NULL, 0, 0, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

int posix_fallocate(int descriptor, off_t offset, off_t count) {
  struct file *file = file_of(descriptor);
  if (file) {
    pthread_mutex_lock(&lock);
    int is_full = file->watch && excess(&watches[file->watch - 1], descriptor, offset + count) > 0;
    pthread_mutex_unlock(&lock);
    if (is_full) return ENOSPC;
  }
  return syscall(SYS_fallocate, descriptor, 0, offset, count) == 0 ? 0 : errno;
}

int ftruncate64(int descriptor, off64_t count) { return ftruncate(descriptor, count); }

void *mmap(void *address, size_t count, int protection, int flags, int descriptor, off_t offset) {
  struct file *file = flags & MAP_ANONYMOUS ? NULL : file_of(descriptor);
  if (!file) return (void *)syscall(SYS_mmap, address, count, protection, flags, descriptor, offset);
  struct watch how;
  pthread_mutex_lock(&lock);
  int is_failing = fails(&watches[file->watch - 1], FAULTY_MAP, &how);
  pthread_mutex_unlock(&lock);
  if (is_failing) {
    errno = how.error;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mmap, address, count, protection, flags, descriptor, offset);
}

void *mmap64(void *address, size_t count, int protection, int flags, int descriptor, off64_t offset) {
  return mmap(address, count, protection, flags, descriptor, offset);
}

// The watch that a path falls under, from 1; 0 for none. Under the lock.
static int watch_of(const char *path) {
  for (int i = 0; i < WATCHES; i++) {
    if (watches[i].prefix && strncmp(path, watches[i].prefix, strlen(watches[i].prefix)) == 0) return i + 1;
  }
  return 0;
}

static int opened(const char *path, int flags, mode_t mode) {
  if (atomic_load(&watch_count) == 0) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  struct watch how;
  pthread_mutex_lock(&lock);
  int watch = watch_of(path);
  if (watch && fails(&watches[watch - 1], FAULTY_OPEN, &how)) {
    pthread_mutex_unlock(&lock);
    errno = how.error;
    return -1;
  }
  int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  int error = errno;
  if (descriptor >= 0 && descriptor < DESCRIPTORS) {
    struct file *file = &files[descriptor];
    const char *slash = strrchr(path, '/');
    file->watch = watch;
    file->is_synced = (flags & O_DSYNC) != 0;
    strncpy(file->name, slash ? slash + 1 : path, sizeof file->name - 1);
  }
  pthread_mutex_unlock(&lock);
  errno = error;
  return descriptor;
}

int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return opened(path, flags, mode);
}

int close(int descriptor) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS && files[descriptor].watch) {
    pthread_mutex_lock(&lock);
    files[descriptor].watch = 0;
    pthread_mutex_unlock(&lock);
  }
  return (int)syscall(SYS_close, descriptor);
}
