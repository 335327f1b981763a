/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * paravirtual_preemptable_ticket.h - a preemptable ticket lock whose waiters halt after a long wait.
 *
 * Source: VEE'13 section 5.2, ruling 13. A waiter never halts in the queue: it would sleep through its time-out. Once
 * it may compete it halts after 2,048 spins on the lock word. Unlock kicks every halted waiter of this lock: the vCPU
 * whose ticket is called may not compete yet, and kicking in ticket order would leave passed waiters halted for ever (a
 * test shows the deadlock). Fairness and limits: as preemptable_ticket.h; a waiter whose number is PLATFORM_WAITERS_MAX
 * or more spins and never halts.
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

/* Initialises the lock, before it is shared, with this tau in spins. */
static inline void paravirtual_preemptable_ticket_init_tau(struct paravirtual_preemptable_ticket_lock *lock,
							   unspin_u32 tau_spins)
{
	preemptable_ticket_init_tau(&lock->ticket, tau_spins);
	sleepers_init(&lock->sleepers);
}

/* Initialises the lock, before it is shared, with the paper's tau. */
static inline void paravirtual_preemptable_ticket_init(struct paravirtual_preemptable_ticket_lock *lock)
{
	paravirtual_preemptable_ticket_init_tau(lock, PREEMPTABLE_TICKET_TAU_SPINS);
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
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

/* Sets `taken` to 0 and kicks all halted waiters. */
static inline void paravirtual_preemptable_ticket_open(struct paravirtual_preemptable_ticket_lock *lock)
{
	platform_exchange_ordered(&lock->ticket.taken, 0);
	sleepers_kick_all(&lock->sleepers);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool paravirtual_preemptable_ticket_trylock(struct paravirtual_preemptable_ticket_lock *lock)
{
	enum preemptable_ticket_try try = preemptable_ticket_try(&lock->ticket);

	/* A waiter may have halted while the caller held `taken` without getting the lock: it must be kicked. */
	if (try == PREEMPTABLE_TICKET_IN_VAIN)
		paravirtual_preemptable_ticket_open(lock);
	return try == PREEMPTABLE_TICKET_TAKEN;
}

/* Whether the lock is held or waited for. May be out of date when it returns, and implies no memory order. */
static inline _Bool paravirtual_preemptable_ticket_is_locked(const struct paravirtual_preemptable_ticket_lock *lock)
{
	return preemptable_ticket_is_locked(&lock->ticket);
}

/*
 * For the holder only; does nothing to a lock that is not held. Calls the next ticket, opens the lock, kicks halted
 * waiters.
 */
static inline void paravirtual_preemptable_ticket_unlock(struct paravirtual_preemptable_ticket_lock *lock)
{
	if (platform_load_relaxed(&lock->ticket.taken) == 0)
		return;
	platform_store_release(&lock->ticket.head, platform_load_relaxed(&lock->ticket.head) + 1);
	paravirtual_preemptable_ticket_open(lock);
}

#endif
