// Functions of Linux that the broker needs and the toolchain's Glibc module lacks.
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

// Neither <sys/socket.h> nor <netinet/in.h> is included. With them, it would depend on the order in which modules are loaded whether a Swift file finds
// iovec and in_addr in Glibc, or has to import this module.
struct sockaddr;

// GNU extensions: the C library's headers declare them only if _GNU_SOURCE is defined, which the importer of a module
// can't do.
extern int accept4(int, struct sockaddr *, unsigned int *, int);
extern int pthread_setname_np(pthread_t, const char *);
extern int sched_getaffinity(pid_t, size_t, cpu_set_t *);

// Waiting until a word in memory changes. The C library has no functions for that.
static inline long sluice_futex_wait(const void *word, uint32_t expected) {
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, (void *)0, (void *)0, 0);
}
static inline long sluice_futex_wake(const void *word, int count) {
  return syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, (void *)0, (void *)0, 0);
}

// The kernel's state of a TCP connection whose peer accepts no more bytes. The C library's header has an old tcp_info without the window, and the kernel's
// header can't be included beside it: the offsets are those of the kernel's structure, which only grows at its end.
struct sluice_tcp_state {
  uint32_t retransmits;     // retransmissions of the oldest unacknowledged segment
  uint32_t probes;          // unanswered window probes
  uint32_t unacknowledged;  // unacknowledged segments
  uint32_t window;          // bytes that the peer accepts; UINT32_MAX if the kernel doesn't report it
  uint32_t segment;         // the largest segment, in bytes
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

// Hints to the processor that a loop waits for another thread.
static inline void sluice_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

#endif
