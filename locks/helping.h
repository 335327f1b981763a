/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * helping.h - a ticket lock whose waiters ask the host for help when they wait unusually long.
 *
 * Source: Friebel and Biemueller 2008, "Helping locks", ruling 2: the call is anonymous, the host chooses which vCPU runs instead.
 * His threshold lies between ordinary waits and preemption waits ("Threshold", ruling 4; `unspin threshold` finds it); ours
 * by default is the stall of VEE'13 (2,048 spins, claim O05), and the call is repeated after as many again. Threads: sched_yield.
 * Where the host
 * publishes a spin count (platform_spin_count()), that is the threshold. Fairness: FIFO. Limits: as ticket.h.
 */
#ifndef UNSPIN_LOCKS_HELPING_H
#define UNSPIN_LOCKS_HELPING_H

#include "ticket.h"

#define HELPING_AFTER_SPINS 2048u

struct helping_lock {
	struct ticket_lock ticket;
	unspin_u32
		after_spins; /* 1 or more; never changes after init. The host may set another: platform_spin_count() */
};

/* Before the lock is shared, with a threshold of one's own, 1 to PLATFORM_FOREVER (never). */
static inline void helping_init_after(struct helping_lock *lock, unspin_u32 after_spins)
{
	ticket_init(&lock->ticket);
	lock->after_spins = after_spins;
}

/* Before the lock is shared. */
static inline void helping_init(struct helping_lock *lock)
{
	helping_init_after(lock, HELPING_AFTER_SPINS);
}

/* Returns when the caller holds the lock. It must not hold it already. */
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

/* A glance: it may be out of date when it returns, and orders nothing. */
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
