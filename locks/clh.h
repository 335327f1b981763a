/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * clh.h - a queue in which each waiter spins on the node of the one before it, and takes that node over.
 *
 * Source: Craig (1993); Landin and Hagersten (1994). The nodes lie in the lock (place.h), one more than places. A node is
 * named together with a count of its uses, so that trylock cannot take an old name for a new one (wrong after 2^24 uses
 * of one node between its read and its exchange). Fairness: FIFO for waiters with a node of their own.
 */
#ifndef UNSPIN_LOCKS_CLH_H
#define UNSPIN_LOCKS_CLH_H

#include "parts/place.h"

#define CLH_NODES (PLACES + 1)
#define CLH_NODE_MASK 0xffu /* of a name: the node; above it the count of its uses */
#define CLH_ONE_USE 0x100u

_Static_assert(CLH_NODES <= CLH_NODE_MASK, "a node's number has eight bits");

struct clh_node {
	struct platform_word taken __attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* 1 while asked for or held */
};

/* What a waiter keeps from one acquisition to the next; no other waiter reads it. */
struct clh_place {
	struct platform_word own
		__attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* name of its node at its last use */
	struct platform_word before; /* while it holds the lock: name of the node that it takes over */
};

struct clh_lock {
	struct platform_word tail;   /* name of the last node in the queue */
	struct platform_word shared; /* place.h */
	struct clh_node nodes[CLH_NODES];
	struct clh_place places[PLACES];
};

/* Before the lock is shared. */
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

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void clh_lock(struct clh_lock *lock)
{
	struct clh_place *place = &lock->places[place_take(&lock->shared, platform_waiter())];
	unspin_u32 own = platform_load_relaxed(&place->own) + CLH_ONE_USE;
	unspin_u32 before;

	/* Relaxed: a waiter that reads the node has its name from the exchange, which releases. */
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

	/* Acquire: pairs with the release in unlock. If the tail still has this name then, its node is still free. */
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

/* A glance: it may be out of date when it returns, and orders nothing. */
static inline _Bool clh_is_locked(const struct clh_lock *lock)
{
	unspin_u32 tail = platform_load_acquire(&lock->tail);

	return platform_load_relaxed(&lock->nodes[tail & CLH_NODE_MASK].taken) != 0;
}

/* By the holder only, as the waiter that it was when it took the lock; a lock that is not held stays as it is. */
static inline void clh_unlock(struct clh_lock *lock)
{
	unspin_u32 waiter = platform_waiter();
	struct clh_place *place = &lock->places[place_of(waiter)];
	unspin_u32 own = platform_load_relaxed(&place->own);

	if (!clh_is_locked(lock))
		return;
	/* The one before has left its node for good; ours belongs to the one behind as soon as it is open. */
	platform_store_relaxed(&place->own, platform_load_relaxed(&place->before));
	platform_store_release(clh_taken(lock, own), 0);
	place_leave(&lock->shared, waiter);
}

#endif
