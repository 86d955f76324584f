// What the broker needs of Linux that the toolchain's Glibc module leaves out.
#ifndef SLUICE_CLINUX_SHIM_H
#define SLUICE_CLINUX_SHIM_H

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

// GNU extensions: the C library has them, but its headers hide them unless _GNU_SOURCE is set, which an importer of
// a module can't do.
extern int accept4(int, struct sockaddr *, socklen_t *, int);
extern int pthread_setname_np(pthread_t, const char *);
extern int sched_getaffinity(pid_t, size_t, cpu_set_t *);

#endif
