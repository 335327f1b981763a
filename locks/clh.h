/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * clh.h - a queue lock in which each waiter spins on its predecessor's node, and reuses that node for its next
 * acquisition.
 *
 * Source: Craig (1993); Landin and Hagersten (1994). The nodes are in the lock (place.h), one more than places. A
 * node's name contains a count of its uses, so that trylock does not mistake an old name for a new one (it would after
 * 2^24 uses of one node between its read and its exchange). Fairness: FIFO among waiters with a place of their own.
 */
#ifndef UNSPIN_LOCKS_CLH_H
#define UNSPIN_LOCKS_CLH_H

#include "parts/place.h"

#define CLH_NODES (PLACES + 1)
#define CLH_NODE_MASK 0xffu /* the bits of a name that number the node; the bits above count its uses */
#define CLH_ONE_USE 0x100u

_Static_assert(CLH_NODES <= CLH_NODE_MASK, "a node's number has eight bits");

struct clh_node {
	struct platform_word taken
		__attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* 1 while its user waits for the lock or holds it */
};

/* A waiter's private state between acquisitions. */
struct clh_place {
	struct platform_word own
		__attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* name of its node at its last use */
	struct platform_word before; /* while it holds the lock: name of the node that it takes over */
};

struct clh_lock {
	struct platform_word tail;   /* name of the last node in the queue */
	struct platform_word shared; /* of place_take() */
	struct clh_node nodes[CLH_NODES];
	struct clh_place places[PLACES];
};

/* Initialises the lock, before it is shared. */
static inline void clh_init(struct clh_lock *lock)
{
	platform_init(&lock->tail, PLACES);
	platform_init(&lock->shared, 0);
	for (unspin_u32 i = 0; i < CLH_NODES; i++)
		platform_init(&lock->nodes[i].taken, 0);
	for (unspin_u32 i = 0; i < PLACES; i++) {
		platform_init(&lock->places[i].own, i);
		platform_init(&lock->places[i].before, 0);
	}
}

static inline struct platform_word *clh_taken(struct clh_lock *lock, unspin_u32 name)
{
	return &lock->nodes[name & CLH_NODE_MASK].taken;
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void clh_lock(struct clh_lock *lock)
{
	struct clh_place *place = &lock->places[place_take(&lock->shared, platform_waiter())];
	unspin_u32 own = platform_load_relaxed(&place->own) + CLH_ONE_USE;
	unspin_u32 before;

	/* Relaxed: another waiter learns the node's name from the exchange below, which releases. */
	platform_store_relaxed(clh_taken(lock, own), 1);
	before = platform_exchange_ordered(&lock->tail, own);
	platform_wait_until(clh_taken(lock, before), 0);
	platform_store_relaxed(&place->own, own);
	platform_store_relaxed(&place->before, before);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool clh_trylock(struct clh_lock *lock)
{
	unspin_u32 waiter = platform_waiter();
	struct clh_place *place = &lock->places[place_of(waiter)];
	unspin_u32 before = platform_load_acquire(&lock->tail), own;

	/*
	 * Acquire: pairs with the release in unlock. If the tail still has this name at the exchange, its node is still
	 * free.
	 */
	if (platform_load_acquire(clh_taken(lock, before)) != 0 || !place_try(&lock->shared, waiter))
		return 0;
	own = platform_load_relaxed(&place->own) + CLH_ONE_USE;
	platform_store_relaxed(clh_taken(lock, own), 1);
	if (platform_compare_exchange_ordered(&lock->tail, before, own) != before) {
		platform_store_relaxed(clh_taken(lock, own), 0);
		place_leave(&lock->shared, waiter);
		return 0;
	}
	platform_store_relaxed(&place->own, own);
	platform_store_relaxed(&place->before, before);
	return 1;
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool clh_is_locked(const struct clh_lock *lock)
{
	unspin_u32 tail = platform_load_acquire(&lock->tail);

	return platform_load_relaxed(&lock->nodes[tail & CLH_NODE_MASK].taken) != 0;
}

/* For the holder only, under the waiter number with which it took the lock; does nothing to a lock that is not held. */
static inline void clh_unlock(struct clh_lock *lock)
{
	unspin_u32 waiter = platform_waiter();
	struct clh_place *place = &lock->places[place_of(waiter)];
	unspin_u32 own = platform_load_relaxed(&place->own);

	if (!clh_is_locked(lock))
		return;
	/*
	 * The predecessor no longer uses its node, so the caller takes it. The successor owns the caller's node once
	 * `taken` is 0.
	 */
	platform_store_relaxed(&place->own, platform_load_relaxed(&place->before));
	platform_store_release(clh_taken(lock, own), 0);
	place_leave(&lock->shared, waiter);
}

#endif
