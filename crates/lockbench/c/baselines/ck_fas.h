/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ck_fas.h - Concurrency Kit's ck_spinlock_fas, under the drivers' names. */
#ifndef UNSPIN_BENCH_BASELINES_CK_FAS_H
#define UNSPIN_BENCH_BASELINES_CK_FAS_H

#include <ck_spinlock.h>

struct ck_fas_lock {
	ck_spinlock_fas_t spinlock;
};

static inline void ck_fas_init(struct ck_fas_lock *lock)
{
	ck_spinlock_fas_init(&lock->spinlock);
}

static inline void ck_fas_lock(struct ck_fas_lock *lock)
{
	ck_spinlock_fas_lock(&lock->spinlock);
}

static inline _Bool ck_fas_trylock(struct ck_fas_lock *lock)
{
	return ck_spinlock_fas_trylock(&lock->spinlock);
}

static inline _Bool ck_fas_is_locked(const struct ck_fas_lock *lock)
{
	return ck_spinlock_fas_locked((ck_spinlock_fas_t *)&lock->spinlock);
}

static inline void ck_fas_unlock(struct ck_fas_lock *lock)
{
	ck_spinlock_fas_unlock(&lock->spinlock);
}

#endif
