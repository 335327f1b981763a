/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ck_ticket.h - Concurrency Kit's ck_spinlock_ticket, under the drivers' names. */
#ifndef UNSPIN_BENCH_BASELINES_CK_TICKET_H
#define UNSPIN_BENCH_BASELINES_CK_TICKET_H

#include <ck_spinlock.h>

struct ck_ticket_lock {
	ck_spinlock_ticket_t spinlock;
};

static inline void ck_ticket_init(struct ck_ticket_lock *lock)
{
	ck_spinlock_ticket_init(&lock->spinlock);
}

static inline void ck_ticket_lock(struct ck_ticket_lock *lock)
{
	ck_spinlock_ticket_lock(&lock->spinlock);
}

static inline _Bool ck_ticket_trylock(struct ck_ticket_lock *lock)
{
	return ck_spinlock_ticket_trylock(&lock->spinlock);
}

static inline _Bool ck_ticket_is_locked(const struct ck_ticket_lock *lock)
{
	return ck_spinlock_ticket_locked((ck_spinlock_ticket_t *)&lock->spinlock);
}

static inline void ck_ticket_unlock(struct ck_ticket_lock *lock)
{
	ck_spinlock_ticket_unlock(&lock->spinlock);
}

#endif
