/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * paravirtual_ticket.h - a ticket lock whose waiters halt after a long wait, and whose unlock kicks the next.
 *
 * Source: Linux 3.12 to 4.1 (kvm_lock_spinning() and kvm_unlock_kick(), arch/x86/kernel/kvm.c); VEE'13 section 5.2: a
 * waiter halts after 2,048 spins (or as many as the host sets), whether or not the head moves; unlock kicks the waiter
 * whose ticket it calls. Waiters do not occupy a CPU for long, but the lock may still pass to a descheduled waiter.
 * Fairness: FIFO. Limits: as ticket.h; a waiter whose number is PLATFORM_WAITERS_MAX or more spins and never halts.
 */
#ifndef UNSPIN_LOCKS_PARAVIRTUAL_TICKET_H
#define UNSPIN_LOCKS_PARAVIRTUAL_TICKET_H

#include "parts/sleepers.h"
#include "ticket.h"

/* VEE'13 section 5.2, claim O11. */
#define PARAVIRTUAL_TICKET_HALT_SPINS 2048u

struct paravirtual_ticket_lock {
	struct ticket_lock ticket;
	struct sleepers sleepers;
	struct platform_word
		tickets[PLATFORM_WAITERS_MAX]; /* by waiter: its ticket, valid while its bit in `sleepers` is set */
};

/* Initialises the lock, before it is shared. */
static inline void paravirtual_ticket_init(struct paravirtual_ticket_lock *lock)
{
	ticket_init(&lock->ticket);
	sleepers_init(&lock->sleepers);
	for (unspin_u32 i = 0; i < PLATFORM_WAITERS_MAX; i++)
		platform_init(&lock->tickets[i], 0);
}

/* Halts until the ticket is called or the caller is woken, with or without cause. */
static inline void paravirtual_ticket_halt(struct paravirtual_ticket_lock *lock, unspin_u32 waiter, unspin_u32 ticket)
{
	unspin_u32 head;

	/* Relaxed: published by the ordered operation that follows. */
	platform_store_relaxed(&lock->tickets[waiter], ticket);
	sleepers_enter(&lock->sleepers, waiter);
	head = platform_load_acquire(&lock->ticket.head);
	if (head != ticket)
		platform_park(&lock->ticket.head, head);
	sleepers_leave(&lock->sleepers, waiter);
}

/* How many spins the waiter of this number spins before it halts. */
static inline unspin_u32 paravirtual_ticket_spins(unspin_u32 waiter)
{
	return sleepers_knows(waiter) ? platform_spin_count(PARAVIRTUAL_TICKET_HALT_SPINS) : PLATFORM_FOREVER;
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void paravirtual_ticket_lock(struct paravirtual_ticket_lock *lock)
{
	unspin_u32 waiter = platform_waiter();
	unspin_u32 ticket = platform_fetch_add_relaxed(&lock->ticket.tail, 1);

	while (!platform_wait_until_for(&lock->ticket.head, ticket, paravirtual_ticket_spins(waiter)))
		paravirtual_ticket_halt(lock, waiter, ticket);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool paravirtual_ticket_trylock(struct paravirtual_ticket_lock *lock)
{
	return ticket_trylock(&lock->ticket);
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool paravirtual_ticket_is_locked(const struct paravirtual_ticket_lock *lock)
{
	return ticket_is_locked(&lock->ticket);
}

/* Kicks the waiter that has halted with this ticket, if any. The waiter clears its bit itself. */
static inline void paravirtual_ticket_kick(struct paravirtual_ticket_lock *lock, unspin_u32 ticket)
{
	for (unspin_u32 i = 0; i < SLEEPERS_WORDS; i++) {
		unspin_u32 bits = platform_load_acquire(&lock->sleepers.bits[i]);

		for (; bits; bits &= bits - 1) {
			unspin_u32 waiter = 32 * i + (unspin_u32)__builtin_ctz(bits);

			if (platform_load_relaxed(&lock->tickets[waiter]) == ticket) {
				platform_kick(waiter);
				return;
			}
		}
	}
}

/*
 * For the holder only; does nothing to a lock that is not held. Release: the critical section is visible to the next
 * holder.
 */
static inline void paravirtual_ticket_unlock(struct paravirtual_ticket_lock *lock)
{
	unspin_u32 next = platform_load_relaxed(&lock->ticket.head) + 1;

	if (platform_load_relaxed(&lock->ticket.tail) == next - 1)
		return;
	/* Ordered, as sleepers.h requires; Linux's unlock had a lock prefix for the same reason. */
	platform_exchange_ordered(&lock->ticket.head, next);
	paravirtual_ticket_kick(lock, next);
}

#endif
