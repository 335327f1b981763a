/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* glibc_mutex.h - pthread_mutex_t as programs have it by default (PTHREAD_MUTEX_NORMAL), under the drivers' names. */
#ifndef UNSPIN_BENCH_BASELINES_GLIBC_MUTEX_H
#define UNSPIN_BENCH_BASELINES_GLIBC_MUTEX_H

#include <pthread.h>

struct glibc_mutex_lock {
	pthread_mutex_t mutex;
};

static inline void glibc_mutex_init(struct glibc_mutex_lock *lock)
{
	pthread_mutex_init(&lock->mutex, 0);
}

static inline void glibc_mutex_lock(struct glibc_mutex_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

static inline _Bool glibc_mutex_trylock(struct glibc_mutex_lock *lock)
{
	return !pthread_mutex_trylock(&lock->mutex);
}

/* glibc has no such question; its word is the first (nptl/pthreadP.h, 2.36: __data.__lock, 0 when free). */
static inline _Bool glibc_mutex_is_locked(const struct glibc_mutex_lock *lock)
{
	return __atomic_load_n(&lock->mutex.__data.__lock, __ATOMIC_RELAXED) != 0;
}

static inline void glibc_mutex_unlock(struct glibc_mutex_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

#endif
