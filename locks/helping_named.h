/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * helping_named.h - a lock whose word names its holder, so that a waiter can ask the host to run just that vCPU.
 *
 * Ours (ruling 2 keeps the anonymous call apart: helping.h): the generic spinlock of Friebel and Biemueller 2008 with the holder in
 * the word, and KVM_HC_SCHED_YIELD, which every KVM since 5.3 has and which yields to a vCPU by name. Threads: sched_yield.
 * Fairness: none. Limits: numbers of waiters below 2^32 - 1.
 */
#ifndef UNSPIN_LOCKS_HELPING_NAMED_H
#define UNSPIN_LOCKS_HELPING_NAMED_H

#include "platform/contract.h"

/* As HELPING_AFTER_SPINS, claim O05. */
#define HELPING_NAMED_AFTER_SPINS 2048u

struct helping_named_lock {
	struct platform_word holder; /* its number + 1; 0: free */
};

/* Before the lock is shared. */
static inline void helping_named_init(struct helping_named_lock *lock)
{
	platform_init(&lock->holder, 0);
}

/* Returns whether the lock was taken. It writes only a lock that looked free. */
static inline _Bool helping_named_trylock(struct helping_named_lock *lock)
{
	return platform_load_relaxed(&lock->holder) == 0 &&
	       platform_compare_exchange_acquire(&lock->holder, 0, platform_waiter() + 1) == 0;
}

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void helping_named_lock(struct helping_named_lock *lock)
{
	unspin_u32 self = platform_waiter() + 1, holder;

	while ((holder = platform_compare_exchange_acquire(&lock->holder, 0, self)) != 0) {
		/* The same one all the while: a word that changes is a lock that is handed on. */
		if (platform_wait_while(&lock->holder, holder, platform_spin_count(HELPING_NAMED_AFTER_SPINS)) ==
		    holder)
			platform_help_named(holder - 1);
	}
}

/* A glance: it may be out of date when it returns, and orders nothing. */
static inline _Bool helping_named_is_locked(const struct helping_named_lock *lock)
{
	return platform_load_relaxed(&lock->holder) != 0;
}

/*
 * By the holder only; a lock that the caller does not hold stays as it is. Release: the critical section is visible to whoever
 * takes the lock next.
 */
static inline void helping_named_unlock(struct helping_named_lock *lock)
{
	if (platform_load_relaxed(&lock->holder) != platform_waiter() + 1)
		return;
	platform_store_release(&lock->holder, 0);
}

#endif
