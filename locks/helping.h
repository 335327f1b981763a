/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * helping.h - a ticket lock whose waiters ask the host for help when they wait unusually long.
 *
 * Source: Friebel and Biemueller 2008, "Helping locks", ruling 2: the call names no vCPU, the host chooses which one
 * runs instead. The paper's threshold lies between ordinary waits and waits for preempted vCPUs ("Threshold", ruling 4;
 * `unspin threshold` measures it). The default here is the stall of VEE'13 (2,048 spins, claim O05); if the host
 * publishes a spin count (platform_spin_count()), that is the threshold. The call is repeated after as many spins
 * again. Between threads the call is sched_yield(2). Fairness: FIFO. Limits: as ticket.h.
 */
#ifndef UNSPIN_LOCKS_HELPING_H
#define UNSPIN_LOCKS_HELPING_H

#include "ticket.h"

#define HELPING_AFTER_SPINS 2048u

struct helping_lock {
	struct ticket_lock ticket;
	unspin_u32 after_spins; /* 1 or more; constant after init. platform_spin_count() may replace it */
};

/* Initialises the lock with a threshold in spins, 1 to PLATFORM_FOREVER (never ask), before it is shared. */
static inline void helping_init_after(struct helping_lock *lock, unspin_u32 after_spins)
{
	ticket_init(&lock->ticket);
	lock->after_spins = after_spins;
}

/* Initialises the lock, before it is shared. */
static inline void helping_init(struct helping_lock *lock)
{
	helping_init_after(lock, HELPING_AFTER_SPINS);
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void helping_lock(struct helping_lock *lock)
{
	unspin_u32 ticket = platform_fetch_add_relaxed(&lock->ticket.tail, 1);

	while (!platform_wait_until_for(&lock->ticket.head, ticket, platform_spin_count(lock->after_spins)))
		platform_help();
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool helping_trylock(struct helping_lock *lock)
{
	return ticket_trylock(&lock->ticket);
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool helping_is_locked(const struct helping_lock *lock)
{
	return ticket_is_locked(&lock->ticket);
}

/* By the holder only. */
static inline void helping_unlock(struct helping_lock *lock)
{
	ticket_unlock(&lock->ticket);
}

#endif
