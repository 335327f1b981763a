/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * common.h - what the sources of libunspin-preload.so share: the calling thread, libc's own functions, counts.
 *
 * No function that a program calls in place of libc's allocates memory, takes a lock of libc, or changes errno.
 */
#ifndef UNSPIN_LIB_PRELOAD_COMMON_H
#define UNSPIN_LIB_PRELOAD_COMMON_H

#include <pthread.h>
#include <stddef.h>

#include "../../abi/preload/report.h"

/* The calling thread. */
struct preload_thread {
	int tid;	      /* 0: not known yet in this process */
	unsigned int blocks;  /* waits by address so far */
	unsigned int stopped; /* how often it has seen that a holder did not run */
};
extern _Thread_local struct preload_thread preload_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#define PROCESS_BLOCKS() (preload_self.blocks++)
#define PROCESS_SEES_STOPPED() (preload_self.stopped++)
#include "../../locks/blocking/adaptive_mutex.h"

#define PRELOAD_HIDDEN __attribute__((visibility("hidden")))
#define PRELOAD_API __attribute__((visibility("default")))
#define PRELOAD_LIKELY(condition) __builtin_expect(!!(condition), 1)

PRELOAD_HIDDEN int preload_tid_take(void);

/* The kernel's number of the calling thread. */
static inline int preload_tid(void)
{
	return PRELOAD_LIKELY(preload_self.tid) ? preload_self.tid : preload_tid_take();
}

/* Writes `message` to standard error and ends the program: where going on would corrupt its memory. */
PRELOAD_HIDDEN _Noreturn void preload_fail(const char *message);

/* X(result, name, version, parameters): functions of libc, with the version of x86-64 where there is more than one. */
#define PRELOAD_LIBC(X)                                                                                                \
	X(pthread_mutex_init, 0, (pthread_mutex_t *, const pthread_mutexattr_t *))                                     \
	X(pthread_mutex_destroy, 0, (pthread_mutex_t *))                                                               \
	X(pthread_mutex_lock, 0, (pthread_mutex_t *))                                                                  \
	X(pthread_mutex_trylock, 0, (pthread_mutex_t *))                                                               \
	X(pthread_mutex_timedlock, 0, (pthread_mutex_t *, const struct timespec *))                                    \
	X(pthread_mutex_clocklock, 0, (pthread_mutex_t *, clockid_t, const struct timespec *))                         \
	X(pthread_mutex_unlock, 0, (pthread_mutex_t *))                                                                \
	X(pthread_cond_init, "GLIBC_2.3.2", (pthread_cond_t *, const pthread_condattr_t *))                            \
	X(pthread_cond_destroy, "GLIBC_2.3.2", (pthread_cond_t *))                                                     \
	X(pthread_cond_wait, "GLIBC_2.3.2", (pthread_cond_t *, pthread_mutex_t *))                                     \
	X(pthread_cond_timedwait, "GLIBC_2.3.2", (pthread_cond_t *, pthread_mutex_t *, const struct timespec *))       \
	X(pthread_cond_clockwait, 0, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))        \
	X(pthread_cond_signal, "GLIBC_2.3.2", (pthread_cond_t *))                                                      \
	X(pthread_cond_broadcast, "GLIBC_2.3.2", (pthread_cond_t *))                                                   \
	X(pthread_rwlock_init, 0, (pthread_rwlock_t *, const pthread_rwlockattr_t *))                                  \
	X(pthread_rwlock_destroy, 0, (pthread_rwlock_t *))                                                             \
	X(pthread_rwlock_rdlock, 0, (pthread_rwlock_t *))                                                              \
	X(pthread_rwlock_tryrdlock, 0, (pthread_rwlock_t *))                                                           \
	X(pthread_rwlock_clockrdlock, 0, (pthread_rwlock_t *, clockid_t, const struct timespec *))                     \
	X(pthread_rwlock_wrlock, 0, (pthread_rwlock_t *))                                                              \
	X(pthread_rwlock_trywrlock, 0, (pthread_rwlock_t *))                                                           \
	X(pthread_rwlock_clockwrlock, 0, (pthread_rwlock_t *, clockid_t, const struct timespec *))                     \
	X(pthread_rwlock_unlock, 0, (pthread_rwlock_t *))                                                              \
	X(pthread_spin_init, 0, (pthread_spinlock_t *, int))

struct preload_libc {
#define PRELOAD_LIBC_MEMBER(name, version, parameters) int(*name) parameters;
	PRELOAD_LIBC(PRELOAD_LIBC_MEMBER)
#undef PRELOAD_LIBC_MEMBER
};
extern struct preload_libc preload_libc_table PRELOAD_HIDDEN;
PRELOAD_HIDDEN void preload_libc_find(void);

/* libc's own functions, found at the first call. */
static inline const struct preload_libc *preload_libc(void)
{
	/* The last one that is stored. Acquire: then all others are there. */
	if (!__atomic_load_n(&preload_libc_table.pthread_spin_init, __ATOMIC_ACQUIRE))
		preload_libc_find();
	return &preload_libc_table;
}

/* Where calls are counted; 0: nowhere. */
extern struct unspin_preload_report *preload_report PRELOAD_HIDDEN;
/* Maps the file that UNSPIN_PRELOAD_REPORT names in this environment, if it does. At the program's start. */
PRELOAD_HIDDEN void preload_report_open(char **environment);
/* So many objects of this kind that are left to libc were initialised. */
PRELOAD_HIDDEN void preload_count_passed(enum unspin_preload_passed kind);
/* The calling thread has waited for the object; `before`: what it was before. `site`: where the call returns to. */
PRELOAD_HIDDEN void preload_count_wait(enum unspin_preload_kind kind, const void *object, const void *site,
				       struct preload_thread before);

/* The absolute time until which a call waits; 0 if the clock is not known (EINVAL). */
static inline _Bool preload_deadline(struct process_deadline *deadline, clockid_t clock, const struct timespec *time)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return 0;
	*deadline = (struct process_deadline){.time = *time, .realtime = clock == CLOCK_REALTIME};
	/* The kernel refuses negative times, which have passed. */
	if (deadline->time.tv_sec < 0)
		deadline->time = (struct timespec){0};
	return 1;
}

static inline _Bool preload_is_time(const struct timespec *time)
{
	return time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

#endif
