/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * paravirtual_qspinlock.h - Linux's queued spinlock for guests: newcomers may steal the lock, queued waiters halt and
 * are kicked.
 *
 * Source: kernel/locking/qspinlock_paravirt.h, Linux 7.2. A newcomer may take the lock past the queue unless the first
 * of the queue has set the pending bit. A waiter halts after 2^15 spins (or as many as platform_spin_count() returns),
 * or as soon as its predecessor is halted or preempted, tested every 256 spins (adaptive). Unlock kicks the first of
 * the queue if it has halted; Linux finds it by a hash table of locks, here its number is in the lock. Fairness: FIFO
 * in the queue, which newcomers may pass. A wrong pv page makes a waiter halt early, which costs a kick.
 */
#ifndef UNSPIN_LOCKS_PARAVIRTUAL_QSPINLOCK_H
#define UNSPIN_LOCKS_PARAVIRTUAL_QSPINLOCK_H

#include "qspinlock.h"

/*
 * SPIN_THRESHOLD (arch/x86/include/asm/spinlock.h) and PV_PREV_CHECK_MASK + 1. crates/lockcheck sets the first to the
 * second, since rounds of reads differ only in their count.
 */
#ifndef PARAVIRTUAL_QSPINLOCK_HALT_SPINS
#define PARAVIRTUAL_QSPINLOCK_HALT_SPINS (1u << 15)
#endif
#define PARAVIRTUAL_QSPINLOCK_POLL_SPINS 256u
/* A bit of the lock's byte beside QSPINLOCK_LOCKED: unlock must kick waiter `first` (_Q_SLOW_VAL). */
#define PARAVIRTUAL_QSPINLOCK_SLOW 0x2u

enum paravirtual_qspinlock_state {
	PARAVIRTUAL_QSPINLOCK_RUNNING = 0,
	PARAVIRTUAL_QSPINLOCK_HALTED = 1,
	PARAVIRTUAL_QSPINLOCK_FIRST = 2, /* first of the queue, and unlock will kick it (vcpu_hashed) */
};

struct paravirtual_qspinlock_node {
	struct platform_word next
		__attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* next in the queue: place + 1; 0: none yet */
	struct platform_word waits;				   /* 1 until it is first in the queue */
	struct platform_word state;				   /* enum paravirtual_qspinlock_state */
	struct platform_word waiter;				   /* number of the waiter that queues here */
};

struct paravirtual_qspinlock_lock {
	struct platform_word value;
	struct platform_word shared; /* of place_take() */
	struct platform_word first;  /* number of the waiter to kick; valid while SLOW is set */
	struct paravirtual_qspinlock_node nodes[PLACES];
};

/* Initialises the lock, before it is shared. */
static inline void paravirtual_qspinlock_init(struct paravirtual_qspinlock_lock *lock)
{
	platform_init(&lock->value, 0);
	platform_init(&lock->shared, 0);
	platform_init(&lock->first, 0);
	for (unspin_u32 i = 0; i < PLACES; i++) {
		platform_init(&lock->nodes[i].next, 0);
		platform_init(&lock->nodes[i].waits, 0);
		platform_init(&lock->nodes[i].state, PARAVIRTUAL_QSPINLOCK_RUNNING);
		platform_init(&lock->nodes[i].waiter, 0);
	}
}

/*
 * Takes the lock and clears the bits `clear`, if it is free and no bit of `not` is set. Tries once; returns whether it
 * did.
 */
static inline _Bool paravirtual_qspinlock_try(struct paravirtual_qspinlock_lock *lock, unspin_u32 not, unspin_u32 clear)
{
	unspin_u32 value = platform_load_relaxed(&lock->value);

	return !(value & (QSPINLOCK_LOCKED_MASK | not)) &&
	       platform_compare_exchange_acquire(&lock->value, value, (value & ~clear) | QSPINLOCK_LOCKED) == value;
}

/* pv_hybrid_queued_unfair_trylock(): tries to take the lock as long as others queue and the pending bit is not set. */
static inline _Bool paravirtual_qspinlock_steal(struct paravirtual_qspinlock_lock *lock)
{
	for (;;) {
		unspin_u32 value;

		if (paravirtual_qspinlock_try(lock, QSPINLOCK_PENDING, 0))
			return 1;
		value = platform_load_relaxed(&lock->value);
		if (!(value & QSPINLOCK_TAIL_MASK) || (value & QSPINLOCK_PENDING))
			return 0;
		platform_wait_while(&lock->value, value, 1);
	}
}

/* How many rounds of POLL_SPINS spins a waiter spins before it halts: 1 or more. */
static inline unspin_u32 paravirtual_qspinlock_rounds(void)
{
	unspin_u32 spins = platform_spin_count(PARAVIRTUAL_QSPINLOCK_HALT_SPINS);

	return (spins - 1) / PARAVIRTUAL_QSPINLOCK_POLL_SPINS + 1;
}

/* pv_wait_node(): returns when the caller is first in the queue. */
static inline void paravirtual_qspinlock_wait(struct paravirtual_qspinlock_node *node,
					      const struct paravirtual_qspinlock_node *before)
{
	for (;;) {
		unspin_u32 rounds = paravirtual_qspinlock_rounds();

		for (unspin_u32 round = 0; round < rounds; round++) {
			if (platform_wait_while(&node->waits, 1, PARAVIRTUAL_QSPINLOCK_POLL_SPINS) == 0)
				return;
			if (platform_load_relaxed(&before->state) != PARAVIRTUAL_QSPINLOCK_RUNNING ||
			    platform_is_preempted(platform_load_relaxed(&before->waiter)))
				break;
		}
		/* Ordered: either this waiter sees that it is first, or the one that makes it first sees it halted. */
		platform_exchange_ordered(&node->state, PARAVIRTUAL_QSPINLOCK_HALTED);
		if (platform_load_acquire(&node->waits) != 0)
			platform_park(&node->state, PARAVIRTUAL_QSPINLOCK_HALTED);
		platform_compare_exchange_ordered(&node->state, PARAVIRTUAL_QSPINLOCK_HALTED,
						  PARAVIRTUAL_QSPINLOCK_RUNNING);
	}
}

/* pv_wait_head_or_lock(): the caller is first in the queue; returns when it holds the lock. */
static inline void paravirtual_qspinlock_wait_first(struct paravirtual_qspinlock_lock *lock,
						    struct paravirtual_qspinlock_node *node)
{
	for (;;) {
		unspin_u32 rounds = paravirtual_qspinlock_rounds(), value;

		platform_store_relaxed(&node->state, PARAVIRTUAL_QSPINLOCK_RUNNING);
		platform_fetch_or_ordered(&lock->value, QSPINLOCK_PENDING);
		for (unspin_u32 round = 0; round < rounds; round++) {
			if (paravirtual_qspinlock_try(lock, 0, QSPINLOCK_PENDING))
				return;
			value = platform_load_relaxed(&lock->value);
			if (value & QSPINLOCK_LOCKED_MASK)
				platform_wait_while(&lock->value, value, PARAVIRTUAL_QSPINLOCK_POLL_SPINS);
		}
		platform_fetch_and_ordered(&lock->value, ~QSPINLOCK_PENDING);
		platform_store_relaxed(&lock->first, platform_load_relaxed(&node->waiter));
		value = platform_fetch_or_ordered(&lock->value, QSPINLOCK_LOCKED | PARAVIRTUAL_QSPINLOCK_SLOW);
		if (!(value & QSPINLOCK_LOCKED_MASK)) { /* it was free, so the caller holds it: no kick */
			platform_fetch_and_ordered(&lock->value, ~PARAVIRTUAL_QSPINLOCK_SLOW);
			return;
		}
		platform_exchange_ordered(&node->state, PARAVIRTUAL_QSPINLOCK_FIRST);
		value = platform_load_acquire(&lock->value);
		if (value & PARAVIRTUAL_QSPINLOCK_SLOW)
			platform_park(&lock->value, value);
	}
}

/* pv_kick_node(): makes `next` the first of the queue. If it has halted, the caller's unlock will kick it. */
static inline void paravirtual_qspinlock_make_first(struct paravirtual_qspinlock_lock *lock,
						    struct paravirtual_qspinlock_node *next)
{
	platform_exchange_ordered(&next->waits, 0);
	if (platform_compare_exchange_ordered(&next->state, PARAVIRTUAL_QSPINLOCK_HALTED,
					      PARAVIRTUAL_QSPINLOCK_FIRST) != PARAVIRTUAL_QSPINLOCK_HALTED)
		return;
	platform_store_relaxed(&lock->first, platform_load_relaxed(&next->waiter));
	platform_fetch_or_ordered(&lock->value, PARAVIRTUAL_QSPINLOCK_SLOW);
}

/* The caller, which holds the lock and is first in the queue, leaves the queue. */
static inline void paravirtual_qspinlock_leave(struct paravirtual_qspinlock_lock *lock, unspin_u32 place)
{
	struct paravirtual_qspinlock_node *node = &lock->nodes[place];
	unspin_u32 value = platform_load_relaxed(&lock->value);

	while (value >> QSPINLOCK_TAIL_SHIFT == place + 1) {
		unspin_u32 seen = platform_compare_exchange_ordered(&lock->value, value, value & ~QSPINLOCK_TAIL_MASK);

		if (seen == value)
			return;
		value = seen;
	}
	paravirtual_qspinlock_make_first(lock, &lock->nodes[platform_wait_while(&node->next, 0, PLATFORM_FOREVER) - 1]);
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void paravirtual_qspinlock_lock(struct paravirtual_qspinlock_lock *lock)
{
	unspin_u32 waiter = platform_waiter(), place, before;
	struct paravirtual_qspinlock_node *node;

	if (paravirtual_qspinlock_steal(lock))
		return;
	place = place_take(&lock->shared, waiter);
	node = &lock->nodes[place];
	platform_store_relaxed(&node->next, 0);
	platform_store_relaxed(&node->waits, 1);
	platform_store_relaxed(&node->state, PARAVIRTUAL_QSPINLOCK_RUNNING);
	platform_store_relaxed(&node->waiter, waiter);
	before = qspinlock_exchange_tail(&lock->value, place);
	if (before) {
		platform_store_release(&lock->nodes[before - 1].next, place + 1);
		paravirtual_qspinlock_wait(node, &lock->nodes[before - 1]);
	}
	paravirtual_qspinlock_wait_first(lock, node);
	paravirtual_qspinlock_leave(lock, place);
	place_leave(&lock->shared, waiter);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool paravirtual_qspinlock_trylock(struct paravirtual_qspinlock_lock *lock)
{
	return platform_load_relaxed(&lock->value) == 0 &&
	       platform_compare_exchange_acquire(&lock->value, 0, QSPINLOCK_LOCKED) == 0;
}

/* Whether the lock is held or waited for. May be out of date when it returns, and implies no memory order. */
static inline _Bool paravirtual_qspinlock_is_locked(const struct paravirtual_qspinlock_lock *lock)
{
	return platform_load_relaxed(&lock->value) != 0;
}

/*
 * For the holder only; does nothing to a lock that is not held. Release: the critical section is visible to the next
 * holder.
 */
static inline void paravirtual_qspinlock_unlock(struct paravirtual_qspinlock_lock *lock)
{
	unspin_u32 value = platform_load_acquire(&lock->value), seen, first;

	if (!(value & QSPINLOCK_LOCKED))
		return;
	while (!(value & PARAVIRTUAL_QSPINLOCK_SLOW)) {
		seen = platform_compare_exchange_ordered(&lock->value, value, value & ~QSPINLOCK_LOCKED);
		if (seen == value)
			return;
		value = seen;
	}
	/* Read before the lock is released: afterwards another waiter may have written it. */
	first = platform_load_acquire(&lock->first);
	platform_fetch_and_ordered(&lock->value, ~(QSPINLOCK_LOCKED | PARAVIRTUAL_QSPINLOCK_SLOW));
	platform_kick(first);
}

#endif
