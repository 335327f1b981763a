/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * preemptable_ticket.h - a ticket lock in which later waiters may overtake a waiter that does not respond.
 *
 * Source: Ouyang and Lange, VEE'13, section 4, Figures 3 (lock, unlock) and 4 (is_locked, trylock); rulings 8 to 12. A
 * ticket only determines when its waiter may compete: at once if it is called or passed, else after tau spins for each
 * place before it. Mutual exclusion is by the word `taken`.
 *
 * Fairness: FIFO among waiters that have not timed out. Those that have timed out have equal chances among themselves
 * and get the lock before the others, as long as holds are shorter than tau. Once a waiter runs again, at most as many
 * waiters overtake it as there are vCPUs, if holds are shorter than tau and no holder is preempted; while it does not
 * run, any waiter may. tau 0 allows the orders of a test-and-set lock, PLATFORM_FOREVER those of a ticket lock
 * (ruling 12).
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
	unspin_u32 tau_spins;	    /* 0..PLATFORM_FOREVER; constant after init */
};

/* Initialises the lock, before it is shared, with this tau in spins. */
static inline void preemptable_ticket_init_tau(struct preemptable_ticket_lock *lock, unspin_u32 tau_spins)
{
	platform_init(&lock->tail, 0);
	platform_init(&lock->head, 0);
	platform_init(&lock->taken, 0);
	lock->tau_spins = tau_spins;
}

/* Initialises the lock, before it is shared, with the paper's tau. */
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
 * Places between a ticket and the front: 0, it is called; below 0, it was passed while its waiter did not run (both may
 * compete); above 0, it waits. Equation 2, as a signed difference, which is correct when the counters wrap.
 */
static inline int preemptable_ticket_position(unspin_u32 ticket, unspin_u32 head)
{
	return (int)(ticket - head);
}

/* Draws a ticket and returns when the caller may compete for `taken`: when it is called, passed or timed out. */
static inline void preemptable_ticket_queue(struct preemptable_ticket_lock *lock)
{
	/*
	 * Relaxed: ticket and head only decide how long to wait before competing. Whatever they are, the lock is taken
	 * by the acquire exchange on `taken`, which pairs with the release store on `taken` in unlock.
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

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void preemptable_ticket_lock(struct preemptable_ticket_lock *lock)
{
	preemptable_ticket_queue(lock);
	/*
	 * Figure 3 line 29: a generic spinlock among all that may compete. Here it is written only when it looks free.
	 */
	while (platform_exchange_acquire(&lock->taken, 1) != 0)
		platform_wait_while(&lock->taken, 1, PLATFORM_FOREVER);
}

/* The result of a try. */
enum preemptable_ticket_try {
	PREEMPTABLE_TICKET_REFUSED,
	PREEMPTABLE_TICKET_TAKEN,
	PREEMPTABLE_TICKET_IN_VAIN, /* the caller has `taken` but not the lock: it must store 0 to `taken` */
};

static inline enum preemptable_ticket_try preemptable_ticket_try(struct preemptable_ticket_lock *lock)
{
	unspin_u32 head = platform_load_relaxed(&lock->head);

	if (platform_load_relaxed(&lock->tail) != head || platform_load_relaxed(&lock->taken) != 0)
		return PREEMPTABLE_TICKET_REFUSED;
	/*
	 * Figure 4 exchanges tickets and lock as one 64-bit word, which has no room for 32-bit tickets. So `taken` is
	 * exchanged first: a ticket could not be returned, `taken` can. While the caller has it the head does not
	 * change, and the tail equals it only if nobody waits.
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

/*
 * Whether the lock is held or waited for (Figure 4 line 3). May be out of date when it returns, and implies no memory
 * order.
 */
static inline _Bool preemptable_ticket_is_locked(const struct preemptable_ticket_lock *lock)
{
	/* head is read first, since it never passes tail. */
	unspin_u32 head = platform_load_acquire(&lock->head);

	return platform_load_relaxed(&lock->tail) != head || platform_load_relaxed(&lock->taken) != 0;
}

/*
 * For the holder only; does nothing to a lock that is not held. Calls the next ticket, then opens the lock (Figure 3
 * lines 39 and 40).
 */
static inline void preemptable_ticket_unlock(struct preemptable_ticket_lock *lock)
{
	if (platform_load_relaxed(&lock->taken) == 0)
		return;
	/*
	 * Only the holder of `taken` writes head, so a load and a store suffice. The store releases for is_locked (a
	 * reader that sees a head sees a tail that it has not passed); the critical section is released by the store to
	 * `taken`.
	 */
	platform_store_release(&lock->head, platform_load_relaxed(&lock->head) + 1);
	platform_store_release(&lock->taken, 0);
}

#endif
