/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * helping_named.h - a lock whose word names its holder, so that a waiter can ask the host to run that vCPU.
 *
 * Ours (ruling 2; the paper's call, which names no vCPU, is helping.h): the generic spinlock of Friebel and Biemueller
 * 2008 with the holder's number in the word, and KVM_HC_SCHED_YIELD, which yields to a vCPU by its number (KVM since
 * Linux 5.3). Between threads the call is sched_yield(2). Fairness: none. Limits: waiter numbers below 2^32 - 1.
 */
#ifndef UNSPIN_LOCKS_HELPING_NAMED_H
#define UNSPIN_LOCKS_HELPING_NAMED_H

#include "platform/contract.h"

/* As HELPING_AFTER_SPINS, claim O05. */
#define HELPING_NAMED_AFTER_SPINS 2048u

struct helping_named_lock {
	struct platform_word holder; /* the holder's number + 1; 0: free */
};

/* Initialises the lock, before it is shared. */
static inline void helping_named_init(struct helping_named_lock *lock)
{
	platform_init(&lock->holder, 0);
}

/* Returns whether the lock was taken. Writes the word only if it looked free. */
static inline _Bool helping_named_trylock(struct helping_named_lock *lock)
{
	return platform_load_relaxed(&lock->holder) == 0 &&
	       platform_compare_exchange_acquire(&lock->holder, 0, platform_waiter() + 1) == 0;
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void helping_named_lock(struct helping_named_lock *lock)
{
	unspin_u32 self = platform_waiter() + 1, holder;

	while ((holder = platform_compare_exchange_acquire(&lock->holder, 0, self)) != 0) {
		/*
		 * Asks only if the holder was the same for the whole wait: if the word changes, the lock makes
		 * progress.
		 */
		if (platform_wait_while(&lock->holder, holder, platform_spin_count(HELPING_NAMED_AFTER_SPINS)) ==
		    holder)
			platform_help_named(holder - 1);
	}
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool helping_named_is_locked(const struct helping_named_lock *lock)
{
	return platform_load_relaxed(&lock->holder) != 0;
}

/*
 * For the holder only; does nothing to a lock that the caller does not hold. Release: the critical section is visible
 * to the next holder.
 */
static inline void helping_named_unlock(struct helping_named_lock *lock)
{
	if (platform_load_relaxed(&lock->holder) != platform_waiter() + 1)
		return;
	platform_store_release(&lock->holder, 0);
}

#endif
