// What the broker needs of Linux that the toolchain's Glibc module leaves out.
#ifndef SLUICE_CLINUX_SHIM_H
#define SLUICE_CLINUX_SHIM_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

// Neither <sys/socket.h> nor <netinet/in.h> is included: with them, whether a file of Swift finds iovec and in_addr in Glibc, or has to import this module,
// would depend on which module was loaded first.
struct sockaddr;

// GNU extensions: the C library has them, but its headers hide them unless _GNU_SOURCE is set, which an importer of
// a module can't do.
extern int accept4(int, struct sockaddr *, unsigned int *, int);
extern int pthread_setname_np(pthread_t, const char *);
extern int sched_getaffinity(pid_t, size_t, cpu_set_t *);

// Sleeping until a word in memory changes, which the C library has no functions for.
static inline long sluice_futex_wait(const void *word, uint32_t expected) {
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, (void *)0, (void *)0, 0);
}
static inline long sluice_futex_wake(const void *word, int count) {
  return syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, (void *)0, (void *)0, 0);
}

// What the system knows of a TCP connection that doesn't take more bytes. The C library's header has an old tcp_info without the window, and the kernel's
// can't be included beside it: the offsets are those of the kernel's, which only grows at its end.
struct sluice_tcp_state {
  uint32_t retransmits;     // of the oldest segment that isn't acknowledged
  uint32_t probes;          // of a full window, that weren't answered
  uint32_t unacknowledged;  // segments
  uint32_t window;          // bytes that the peer takes; UINT32_MAX where the kernel doesn't tell
  uint32_t segment;         // bytes of the longest one
};
static inline int sluice_tcp_look(int descriptor, struct sluice_tcp_state *state) {
  union {
    uint8_t bytes[256];
    uint32_t words[64];
  } info = {{0}};
  unsigned int length = sizeof info;
  if (syscall(SYS_getsockopt, descriptor, 6 /* IPPROTO_TCP */, 11 /* TCP_INFO */, &info, &length) != 0) return -1;
  if (length < 28) return -1;
  state->retransmits = info.bytes[2];
  state->probes = info.bytes[3];
  state->segment = info.words[4];
  state->unacknowledged = info.words[6];
  state->window = length >= 232 ? info.words[57] : UINT32_MAX;
  return 0;
}

// Tells the processor that a loop waits for another thread.
static inline void sluice_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

#endif
