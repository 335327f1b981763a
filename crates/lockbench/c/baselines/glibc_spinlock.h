/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* glibc_spinlock.h - pthread_spinlock_t, under the drivers' names. */
#ifndef UNSPIN_BENCH_BASELINES_GLIBC_SPINLOCK_H
#define UNSPIN_BENCH_BASELINES_GLIBC_SPINLOCK_H

#include <pthread.h>

struct glibc_spinlock_lock {
	pthread_spinlock_t spinlock;
};

static inline void glibc_spinlock_init(struct glibc_spinlock_lock *lock)
{
	pthread_spin_init(&lock->spinlock, PTHREAD_PROCESS_PRIVATE);
}

static inline void glibc_spinlock_lock(struct glibc_spinlock_lock *lock)
{
	pthread_spin_lock(&lock->spinlock);
}

static inline _Bool glibc_spinlock_trylock(struct glibc_spinlock_lock *lock)
{
	return !pthread_spin_trylock(&lock->spinlock);
}

/* glibc has no such question. On x86 the word is 1 when free (sysdeps/x86_64/nptl/pthread_spin_init.c, 2.36). */
static inline _Bool glibc_spinlock_is_locked(const struct glibc_spinlock_lock *lock)
{
	return __atomic_load_n(&lock->spinlock, __ATOMIC_RELAXED) <= 0;
}

static inline void glibc_spinlock_unlock(struct glibc_spinlock_lock *lock)
{
	pthread_spin_unlock(&lock->spinlock);
}

#endif
