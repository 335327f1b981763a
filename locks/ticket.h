/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ticket.h - the ticket lock: a FIFO spinlock. A waiter draws a ticket and waits until it is called.
 *
 * Source: Mellor-Crummey and Scott (1991); Linux 2.6.25 to 4.1; VEE'13 section 3. Words are named as in ruling 9: tail
 * counts requests, head counts grants. Fairness: FIFO. Limits: fewer than 2^32 vCPUs in the queue at once; a waiter
 * that is descheduled delays all waiters behind it (lock-waiter preemption).
 */
#ifndef UNSPIN_LOCKS_TICKET_H
#define UNSPIN_LOCKS_TICKET_H

#include "platform/contract.h"

struct ticket_lock {
	struct platform_word tail; /* requests so far = the next ticket; wraps */
	struct platform_word head; /* grants so far = the ticket that may hold the lock; wraps */
};

/* Initialises the lock, before it is shared. */
static inline void ticket_init(struct ticket_lock *lock)
{
	platform_init(&lock->tail, 0);
	platform_init(&lock->head, 0);
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void ticket_lock(struct ticket_lock *lock)
{
	/* Relaxed: atomicity makes the ticket unique; the entry is ordered by the acquire load that sees it called. */
	unspin_u32 ticket = platform_fetch_add_relaxed(&lock->tail, 1);

	platform_wait_until(&lock->head, ticket);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool ticket_trylock(struct ticket_lock *lock)
{
	/*
	 * head is read first, and never passes tail. So if tail still equals it, no ticket was outstanding in between
	 * and the caller's is called already. The acquire on head pairs with the release of the last holder; the
	 * exchange only accesses tail, which nobody releases. (Wrong if 2^32 requests come and go between the two.)
	 */
	unspin_u32 head = platform_load_acquire(&lock->head);

	return platform_load_relaxed(&lock->tail) == head &&
	       platform_compare_exchange_acquire(&lock->tail, head, head + 1) == head;
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool ticket_is_locked(const struct ticket_lock *lock)
{
	/* head is read first, since it never passes tail: so if they are equal, they were when tail was read. */
	unspin_u32 head = platform_load_acquire(&lock->head);

	return platform_load_relaxed(&lock->tail) != head;
}

/*
 * For the holder only; does nothing to a lock that is not held. Release: the critical section is visible to the next
 * holder.
 */
static inline void ticket_unlock(struct ticket_lock *lock)
{
	/* Only the holder writes head, so a load and a store suffice; the load is relaxed because no other writes. */
	unspin_u32 head = platform_load_relaxed(&lock->head);

	if (platform_load_relaxed(&lock->tail) != head)
		platform_store_release(&lock->head, head + 1);
}

#endif
