/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * mcs.h - a queue lock in which each waiter spins on a word of its own.
 *
 * Source: Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors" (1991),
 * Algorithm 5; the nodes are in the lock (place.h). Fairness: FIFO among waiters with a place of their own. A
 * descheduled waiter delays all waiters behind it.
 */
#ifndef UNSPIN_LOCKS_MCS_H
#define UNSPIN_LOCKS_MCS_H

#include "parts/place.h"

struct mcs_node {
	struct platform_word next
		__attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* next in the queue: place + 1; 0: none yet */
	struct platform_word waits;				   /* 1 until the lock is handed over */
};

struct mcs_lock {
	struct platform_word tail;   /* place + 1 of the last in the queue, the holder included; 0: free */
	struct platform_word shared; /* of place_take() */
	struct mcs_node nodes[PLACES];
};

/* Initialises the lock, before it is shared. */
static inline void mcs_init(struct mcs_lock *lock)
{
	platform_init(&lock->tail, 0);
	platform_init(&lock->shared, 0);
	for (unspin_u32 i = 0; i < PLACES; i++) {
		platform_init(&lock->nodes[i].next, 0);
		platform_init(&lock->nodes[i].waits, 0);
	}
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void mcs_lock(struct mcs_lock *lock)
{
	unspin_u32 place = place_take(&lock->shared, platform_waiter());
	struct mcs_node *node = &lock->nodes[place];
	unspin_u32 before;

	/* Relaxed: no other waiter finds the node before the exchange below, which releases these stores. */
	platform_store_relaxed(&node->next, 0);
	platform_store_relaxed(&node->waits, 1);
	before = platform_exchange_ordered(&lock->tail, place + 1);
	if (before) {
		platform_store_release(&lock->nodes[before - 1].next, place + 1);
		platform_wait_while(&node->waits, 1, PLATFORM_FOREVER);
	}
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool mcs_trylock(struct mcs_lock *lock)
{
	unspin_u32 waiter = platform_waiter();

	if (platform_load_relaxed(&lock->tail) != 0 || !place_try(&lock->shared, waiter))
		return 0;
	platform_store_relaxed(&lock->nodes[place_of(waiter)].next, 0);
	if (platform_compare_exchange_ordered(&lock->tail, 0, place_of(waiter) + 1) == 0)
		return 1;
	place_leave(&lock->shared, waiter);
	return 0;
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool mcs_is_locked(const struct mcs_lock *lock)
{
	return platform_load_relaxed(&lock->tail) != 0;
}

/* For the holder only, under the waiter number with which it took the lock; does nothing to a lock that is not held. */
static inline void mcs_unlock(struct mcs_lock *lock)
{
	unspin_u32 waiter = platform_waiter();
	struct mcs_node *node = &lock->nodes[place_of(waiter)];
	unspin_u32 next = platform_load_acquire(&node->next);

	if (platform_load_relaxed(&lock->tail) == 0)
		return;
	/*
	 * No successor is linked: the lock becomes free, unless a waiter has exchanged the tail and not linked itself
	 * yet.
	 */
	if (next == 0 &&
	    platform_compare_exchange_ordered(&lock->tail, place_of(waiter) + 1, 0) != place_of(waiter) + 1)
		next = platform_wait_while(&node->next, 0, PLATFORM_FOREVER);
	if (next)
		platform_store_release(&lock->nodes[next - 1].waits, 0);
	place_leave(&lock->shared, waiter);
}

#endif
