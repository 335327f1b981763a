/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ticket.h - first come, first served: draw a ticket, wait until it is called.
 *
 * Source: Mellor-Crummey and Scott (1991); Linux 2.6.25 to 4.1; VEE'13 section 3. Words are named as in ruling 9: tail
 * counts requests, head counts grants. Fairness: FIFO. Limits: fewer than 2^32 vCPUs in the queue at once; a waiter
 * that is not running stops everybody behind it, which is the disease that this project is about.
 */
#ifndef UNSPIN_LOCKS_TICKET_H
#define UNSPIN_LOCKS_TICKET_H

#include "platform/contract.h"

struct ticket_lock {
	struct platform_word tail; /* requests so far = the next ticket; wraps */
	struct platform_word head; /* grants so far = the ticket that may hold the lock; wraps */
};

/* Before the lock is shared. */
static inline void ticket_init(struct ticket_lock *lock)
{
	platform_init(&lock->tail, 0);
	platform_init(&lock->head, 0);
}

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void ticket_lock(struct ticket_lock *lock)
{
	/* Relaxed: the ticket is ours alone by atomicity; what orders us is the acquire load that sees it called. */
	unspin_u32 ticket = platform_fetch_add_relaxed(&lock->tail, 1);

	platform_wait_until(&lock->head, ticket);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool ticket_trylock(struct ticket_lock *lock)
{
	/*
	 * head is read first, and never passes tail. So if tail still equals it, no ticket was out all the while and
	 * ours is called already. The acquire on head pairs with the release of the last holder: the exchange only
	 * touches tail, which releases nothing. (Wrong if 2^32 requests come and go between the two.)
	 */
	unspin_u32 head = platform_load_acquire(&lock->head);

	return platform_load_relaxed(&lock->tail) == head &&
	       platform_compare_exchange_acquire(&lock->tail, head, head + 1) == head;
}

/* A glance: it may be out of date when it returns, and orders nothing. */
static inline _Bool ticket_is_locked(const struct ticket_lock *lock)
{
	/* head first, since it never passes tail: so equality was true at the time of the second load. */
	unspin_u32 head = platform_load_acquire(&lock->head);

	return platform_load_relaxed(&lock->tail) != head;
}

/* By the holder only; a lock that is not held stays as it is. Release: the critical section is visible to the ticket called. */
static inline void ticket_unlock(struct ticket_lock *lock)
{
	/* Only the holder writes head, so a load and a store do; relaxed, since it reads a value of its own. */
	unspin_u32 head = platform_load_relaxed(&lock->head);

	if (platform_load_relaxed(&lock->tail) != head)
		platform_store_release(&lock->head, head + 1);
}

#endif
