/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ck_mcs.h - Concurrency Kit's ck_spinlock_mcs, under the drivers' names; the drivers hold one lock at a time. */
#ifndef UNSPIN_BENCH_BASELINES_CK_MCS_H
#define UNSPIN_BENCH_BASELINES_CK_MCS_H

#include <ck_spinlock.h>

struct ck_mcs_lock {
	ck_spinlock_mcs_t queue; /* the last in it; 0: free */
};

/* The calling thread's place in the queue, while it waits for or holds a lock. */
static _Thread_local struct ck_spinlock_mcs ck_mcs_node __attribute__((aligned(64)));

static inline void ck_mcs_init(struct ck_mcs_lock *lock)
{
	ck_spinlock_mcs_init(&lock->queue);
}

static inline void ck_mcs_lock(struct ck_mcs_lock *lock)
{
	ck_spinlock_mcs_lock(&lock->queue, &ck_mcs_node);
}

static inline _Bool ck_mcs_trylock(struct ck_mcs_lock *lock)
{
	return ck_spinlock_mcs_trylock(&lock->queue, &ck_mcs_node);
}

static inline _Bool ck_mcs_is_locked(const struct ck_mcs_lock *lock)
{
	return ck_spinlock_mcs_locked((ck_spinlock_mcs_t *)&lock->queue);
}

static inline void ck_mcs_unlock(struct ck_mcs_lock *lock)
{
	ck_spinlock_mcs_unlock(&lock->queue, &ck_mcs_node);
}

#endif
