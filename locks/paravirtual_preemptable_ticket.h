/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * paravirtual_preemptable_ticket.h - a preemptable ticket lock whose competitors halt when it takes long.
 *
 * Source: VEE'13 section 5.2, ruling 13. A waiter never halts in the queue: it would sleep through its time-out. Once it may
 * compete it halts after 2,048 spins on the lock word, and unlock kicks every sleeper of this lock: the one whose ticket
 * is called may be far from the word, and kicking in order would leave waiters asleep that were passed (a test shows the deadlock).
 * Fairness and limits: as preemptable_ticket.h; a waiter whose number is PLATFORM_WAITERS_MAX or more spins and never halts.
 */
#ifndef UNSPIN_LOCKS_PARAVIRTUAL_PREEMPTABLE_TICKET_H
#define UNSPIN_LOCKS_PARAVIRTUAL_PREEMPTABLE_TICKET_H

#include "preemptable_ticket.h"
#include "parts/sleepers.h"

/* VEE'13 section 5.2, claim O11. */
#define PARAVIRTUAL_PREEMPTABLE_TICKET_HALT_SPINS 2048u

struct paravirtual_preemptable_ticket_lock {
	struct preemptable_ticket_lock ticket;
	struct sleepers sleepers;
};

/* Before the lock is shared, with a tau of one's own. */
static inline void paravirtual_preemptable_ticket_init_tau(struct paravirtual_preemptable_ticket_lock *lock,
							   unspin_u32 tau_spins)
{
	preemptable_ticket_init_tau(&lock->ticket, tau_spins);
	sleepers_init(&lock->sleepers);
}

/* Before the lock is shared, with the paper's tau. */
static inline void paravirtual_preemptable_ticket_init(struct paravirtual_preemptable_ticket_lock *lock)
{
	paravirtual_preemptable_ticket_init_tau(lock, PREEMPTABLE_TICKET_TAU_SPINS);
}

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void paravirtual_preemptable_ticket_lock(struct paravirtual_preemptable_ticket_lock *lock)
{
	unspin_u32 waiter = platform_waiter(), spins = PLATFORM_FOREVER;

	preemptable_ticket_queue(&lock->ticket);
	while (platform_exchange_acquire(&lock->ticket.taken, 1) != 0) {
		if (sleepers_knows(waiter))
			spins = platform_spin_count(PARAVIRTUAL_PREEMPTABLE_TICKET_HALT_SPINS);
		if (platform_wait_while(&lock->ticket.taken, 1, spins) == 0)
			continue;
		sleepers_enter(&lock->sleepers, waiter);
		platform_park(&lock->ticket.taken, 1);
		sleepers_leave(&lock->sleepers, waiter);
	}
}

/* Opens the word and wakes those that sleep for it. */
static inline void paravirtual_preemptable_ticket_open(struct paravirtual_preemptable_ticket_lock *lock)
{
	platform_exchange_ordered(&lock->ticket.taken, 0);
	sleepers_kick_all(&lock->sleepers);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool paravirtual_preemptable_ticket_trylock(struct paravirtual_preemptable_ticket_lock *lock)
{
	enum preemptable_ticket_try try = preemptable_ticket_try(&lock->ticket);

	/* A waiter may have gone to sleep over a word that was taken in vain. */
	if (try == PREEMPTABLE_TICKET_IN_VAIN)
		paravirtual_preemptable_ticket_open(lock);
	return try == PREEMPTABLE_TICKET_TAKEN;
}

/* A sample: held or waited for. It may be out of date when it returns, and orders nothing. */
static inline _Bool paravirtual_preemptable_ticket_is_locked(const struct paravirtual_preemptable_ticket_lock *lock)
{
	return preemptable_ticket_is_locked(&lock->ticket);
}

/* By the holder only; a lock that is not held stays as it is. Calls the next ticket, opens the lock, wakes sleepers. */
static inline void paravirtual_preemptable_ticket_unlock(struct paravirtual_preemptable_ticket_lock *lock)
{
	if (platform_load_relaxed(&lock->ticket.taken) == 0)
		return;
	platform_store_release(&lock->ticket.head, platform_load_relaxed(&lock->ticket.head) + 1);
	paravirtual_preemptable_ticket_open(lock);
}

#endif
