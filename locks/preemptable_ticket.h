/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * preemptable_ticket.h - a ticket lock whose queue can be overtaken when its front does not respond.
 *
 * Source: Ouyang and Lange, VEE'13, section 4, Figures 3 (lock, unlock) and 4 (is_locked, trylock); rulings 8 to 12.
 * A ticket only determines when its drawer may compete: at once when it is called or passed, else after tau spins for each
 * place before it. What excludes is the word `taken`.
 *
 * Fairness: FIFO among waiters whose time is not up; those whose time is up have equal chances among themselves and go
 * before the others as long as the lock is held for less than tau. Once a waiter runs again, at most as many overtake
 * it as there are vCPUs, if holds are below tau and no holder is preempted; while it does not run, anybody may. tau 0
 * admits the orders of a test-and-set lock, PLATFORM_FOREVER those of a ticket lock (ruling 12).
 * Limits: fewer than 2^31 vCPUs in the queue at once, since a position is a signed difference (ruling 9).
 */
#ifndef UNSPIN_LOCKS_PREEMPTABLE_TICKET_H
#define UNSPIN_LOCKS_PREEMPTABLE_TICKET_H

#include "platform/contract.h"

/* Spins of waiting per place in the queue: TIMEOUT_UNIT in Figure 3 (ruling 8). */
#define PREEMPTABLE_TICKET_TAU_SPINS 16384u

struct preemptable_ticket_lock {
	struct platform_word tail;  /* requests so far = the next ticket; wraps */
	struct platform_word head;  /* grants so far, counted at unlock; wraps */
	struct platform_word taken; /* 0 free, 1 taken */
	unspin_u32 tau_spins;	    /* 0..PLATFORM_FOREVER; never changes after init */
};

/* Before the lock is shared, with a tau of one's own. */
static inline void preemptable_ticket_init_tau(struct preemptable_ticket_lock *lock, unspin_u32 tau_spins)
{
	platform_init(&lock->tail, 0);
	platform_init(&lock->head, 0);
	platform_init(&lock->taken, 0);
	lock->tau_spins = tau_spins;
}

/* Before the lock is shared, with the paper's tau. */
static inline void preemptable_ticket_init(struct preemptable_ticket_lock *lock)
{
	preemptable_ticket_init_tau(lock, PREEMPTABLE_TICKET_TAU_SPINS);
}

/*
 * Spins that a waiter at `position` (1 or more places from the front) waits for the head to move: position x tau,
 * equation 1. Saturates just below PLATFORM_FOREVER, which only a tau of PLATFORM_FOREVER gives.
 */
static inline unspin_u32 preemptable_ticket_timeout_spins(unspin_u32 position, unspin_u32 tau_spins)
{
	unspin_u64 spins = (unspin_u64)position * tau_spins;

	if (tau_spins == PLATFORM_FOREVER)
		return PLATFORM_FOREVER;
	return spins < PLATFORM_FOREVER ? (unspin_u32)spins : PLATFORM_FOREVER - 1;
}

/*
 * Places between a ticket and the front: 0 it is called, below 0 it was passed while its drawer did not run (both may
 * compete), above 0 it waits. Equation 2, signed, so that it survives the wrap-around of the counters.
 */
static inline int preemptable_ticket_position(unspin_u32 ticket, unspin_u32 head)
{
	return (int)(ticket - head);
}

/* Draws a ticket and returns when its drawer may compete for `taken`: when it is called, passed or timed out. */
static inline void preemptable_ticket_queue(struct preemptable_ticket_lock *lock)
{
	/*
	 * Relaxed: ticket and head only decide how long to wait before competing. Whatever they say, the acquire
	 * exchange on `taken` is what lets in, and it pairs with the release store on `taken` in unlock.
	 */
	unspin_u32 ticket = platform_fetch_add_relaxed(&lock->tail, 1);
	unspin_u32 head = platform_load_relaxed(&lock->head);

	while (preemptable_ticket_position(ticket, head) > 0) {
		/* The countdown restarts whenever the head has moved, with the position then (ruling 8). */
		unspin_u32 spins = preemptable_ticket_timeout_spins(ticket - head, lock->tau_spins);
		unspin_u32 seen = platform_wait_while(&lock->head, head, spins);

		if (seen == head)
			break; /* timed out */
		head = seen;
	}
}

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void preemptable_ticket_lock(struct preemptable_ticket_lock *lock)
{
	preemptable_ticket_queue(lock);
	/* Figure 3 line 29: a generic spinlock for all who may compete; ours only writes when it looks free. */
	while (platform_exchange_acquire(&lock->taken, 1) != 0)
		platform_wait_while(&lock->taken, 1, PLATFORM_FOREVER);
}

/* What a try comes to. */
enum preemptable_ticket_try {
	PREEMPTABLE_TICKET_REFUSED,
	PREEMPTABLE_TICKET_TAKEN,
	PREEMPTABLE_TICKET_IN_VAIN, /* `taken` is the caller's, the lock is not: it must open `taken` again */
};

static inline enum preemptable_ticket_try preemptable_ticket_try(struct preemptable_ticket_lock *lock)
{
	unspin_u32 head = platform_load_relaxed(&lock->head);

	if (platform_load_relaxed(&lock->tail) != head || platform_load_relaxed(&lock->taken) != 0)
		return PREEMPTABLE_TICKET_REFUSED;
	/*
	 * Figure 4 exchanges tickets and lock as one 64-bit word, for which 32-bit tickets leave no room. So first the
	 * word that excludes: a ticket could not be handed back, the word can. While we hold it nobody counts a grant,
	 * so the head read now stands, and the tail equals it only if nobody waits.
	 */
	if (platform_exchange_acquire(&lock->taken, 1) != 0)
		return PREEMPTABLE_TICKET_REFUSED;
	head = platform_load_relaxed(&lock->head);
	if (platform_compare_exchange_acquire(&lock->tail, head, head + 1) == head)
		return PREEMPTABLE_TICKET_TAKEN;
	return PREEMPTABLE_TICKET_IN_VAIN;
}

/* Returns whether the lock was taken: only when nobody holds it or waits for it (Figure 4). */
static inline _Bool preemptable_ticket_trylock(struct preemptable_ticket_lock *lock)
{
	enum preemptable_ticket_try try = preemptable_ticket_try(lock);

	if (try == PREEMPTABLE_TICKET_IN_VAIN)
		platform_store_release(&lock->taken, 0);
	return try == PREEMPTABLE_TICKET_TAKEN;
}

/* A glance: held, or somebody waits (Figure 4 line 3). It may be out of date when it returns, and orders nothing. */
static inline _Bool preemptable_ticket_is_locked(const struct preemptable_ticket_lock *lock)
{
	/* head first, since it never passes tail. */
	unspin_u32 head = platform_load_acquire(&lock->head);

	return platform_load_relaxed(&lock->tail) != head || platform_load_relaxed(&lock->taken) != 0;
}

/*
 * By the holder only; a lock that is not held stays as it is. Calls the next ticket, then opens the lock (Figure 3 lines 39 and
 * 40).
 */
static inline void preemptable_ticket_unlock(struct preemptable_ticket_lock *lock)
{
	if (platform_load_relaxed(&lock->taken) == 0)
		return;
	/*
	 * Only the holder of `taken` writes head, so a load and a store do. That store releases for is_locked's sake
	 * (who sees a head sees the tail that it never passes); the critical section is released by `taken`.
	 */
	platform_store_release(&lock->head, platform_load_relaxed(&lock->head) + 1);
	platform_store_release(&lock->taken, 0);
}

#endif
