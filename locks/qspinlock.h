/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * qspinlock.h - Linux's queued spinlock: one word, one waiter that spins on the word (pending), and an MCS queue behind
 * it.
 *
 * Source: kernel/locking/qspinlock.c and include/asm-generic/qspinlock_types.h, Linux 7.2; after Long and Zijlstra
 * (2014). In the word, bit 0 is the lock, bit 8 the pending waiter, the upper half the last of the queue (place + 1).
 * Linux writes the lock's byte alone; here the word is written by atomic operations. The nodes are in the lock
 * (place.h); Linux has four on each CPU, and a waiter that finds none spins without a place, as here waiters with too
 * great a number do. Fairness: FIFO, but the pending waiter may pass the queue.
 */
#ifndef UNSPIN_LOCKS_QSPINLOCK_H
#define UNSPIN_LOCKS_QSPINLOCK_H

#include "parts/place.h"

#define QSPINLOCK_LOCKED 0x1u
#define QSPINLOCK_PENDING 0x100u
#define QSPINLOCK_LOCKED_MASK 0xffu
#define QSPINLOCK_TAIL_MASK 0xffff0000u
#define QSPINLOCK_TAIL_SHIFT 16
/* Spins to wait while the pending waiter takes the lock: _Q_PENDING_LOOPS, arch/x86/include/asm/qspinlock.h. */
#define QSPINLOCK_PENDING_SPINS (1u << 9)

struct qspinlock_node {
	struct platform_word next
		__attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* next in the queue: place + 1; 0: none yet */
	struct platform_word waits;				   /* 1 until it is first in the queue */
};

struct qspinlock_lock {
	struct platform_word value;
	struct platform_word shared; /* of place_take() */
	struct qspinlock_node nodes[PLACES];
};

/* Initialises the lock, before it is shared. */
static inline void qspinlock_init(struct qspinlock_lock *lock)
{
	platform_init(&lock->value, 0);
	platform_init(&lock->shared, 0);
	for (unspin_u32 i = 0; i < PLACES; i++) {
		platform_init(&lock->nodes[i].next, 0);
		platform_init(&lock->nodes[i].waits, 0);
	}
}

/* Waits until none of the bits is set; returns the value seen then. */
static inline unspin_u32 qspinlock_wait_clear(const struct platform_word *word, unspin_u32 bits)
{
	unspin_u32 value = platform_load_acquire(word);

	while (value & bits)
		value = platform_wait_while(word, value, PLATFORM_FOREVER);
	return value;
}

/* Makes `place` the last of the queue; returns the previous tail (place + 1; 0: none). */
static inline unspin_u32 qspinlock_exchange_tail(struct platform_word *word, unspin_u32 place)
{
	unspin_u32 value = platform_load_relaxed(word), seen;

	for (;; value = seen) {
		unspin_u32 wanted = (value & ~QSPINLOCK_TAIL_MASK) | (place + 1) << QSPINLOCK_TAIL_SHIFT;

		seen = platform_compare_exchange_ordered(word, value, wanted);
		if (seen == value)
			return value >> QSPINLOCK_TAIL_SHIFT;
	}
}

/* Tries to become the pending waiter, and if so waits for the lock. Returns whether the caller holds the lock. */
static inline _Bool qspinlock_lock_pending(struct qspinlock_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->value);

	if (value == QSPINLOCK_PENDING)
		value = platform_wait_while(&lock->value, value, QSPINLOCK_PENDING_SPINS);
	if (value & ~QSPINLOCK_LOCKED_MASK)
		return 0;
	value = platform_fetch_or_ordered(&lock->value, QSPINLOCK_PENDING);
	if (value & ~QSPINLOCK_LOCKED_MASK) {
		if (!(value & QSPINLOCK_PENDING))
			platform_fetch_and_ordered(&lock->value, ~QSPINLOCK_PENDING);
		return 0;
	}
	qspinlock_wait_clear(&lock->value, QSPINLOCK_LOCKED_MASK);
	platform_fetch_add_ordered(&lock->value, QSPINLOCK_LOCKED - QSPINLOCK_PENDING);
	return 1;
}

/* The caller is first in the queue and the lock is free: takes it and makes its successor the first. */
static inline void qspinlock_claim(struct qspinlock_lock *lock, unspin_u32 place, unspin_u32 value)
{
	struct qspinlock_node *node = &lock->nodes[place];
	unspin_u32 next;

	/*
	 * If the caller is also the last, the queue becomes empty. Otherwise the acquire load that saw the lock free
	 * orders what follows.
	 */
	if (value == (place + 1) << QSPINLOCK_TAIL_SHIFT &&
	    platform_compare_exchange_acquire(&lock->value, value, QSPINLOCK_LOCKED) == value)
		return;
	platform_fetch_or_ordered(&lock->value, QSPINLOCK_LOCKED);
	next = platform_wait_while(&node->next, 0, PLATFORM_FOREVER);
	platform_store_release(&lock->nodes[next - 1].waits, 0);
}

static inline void qspinlock_lock_queued(struct qspinlock_lock *lock)
{
	unspin_u32 waiter = platform_waiter();
	unspin_u32 place = place_take(&lock->shared, waiter);
	struct qspinlock_node *node = &lock->nodes[place];
	unspin_u32 before;

	platform_store_relaxed(&node->next, 0);
	platform_store_relaxed(&node->waits, 1);
	before = qspinlock_exchange_tail(&lock->value, place);
	if (before) {
		platform_store_release(&lock->nodes[before - 1].next, place + 1);
		platform_wait_while(&node->waits, 1, PLATFORM_FOREVER);
	}
	qspinlock_claim(lock, place, qspinlock_wait_clear(&lock->value, QSPINLOCK_LOCKED_MASK | QSPINLOCK_PENDING));
	place_leave(&lock->shared, waiter);
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void qspinlock_lock(struct qspinlock_lock *lock)
{
	if (platform_compare_exchange_acquire(&lock->value, 0, QSPINLOCK_LOCKED) == 0)
		return;
	if (!qspinlock_lock_pending(lock))
		qspinlock_lock_queued(lock);
}

/* Returns whether the lock was taken: only when it is neither held nor waited for. */
static inline _Bool qspinlock_trylock(struct qspinlock_lock *lock)
{
	return platform_load_relaxed(&lock->value) == 0 &&
	       platform_compare_exchange_acquire(&lock->value, 0, QSPINLOCK_LOCKED) == 0;
}

/* Whether the lock is held or waited for. May be out of date when it returns, and implies no memory order. */
static inline _Bool qspinlock_is_locked(const struct qspinlock_lock *lock)
{
	return platform_load_relaxed(&lock->value) != 0;
}

/*
 * For the holder only; does nothing to a lock that is not held. Release: the critical section is visible to the next
 * holder.
 */
static inline void qspinlock_unlock(struct qspinlock_lock *lock)
{
	if (platform_load_relaxed(&lock->value) & QSPINLOCK_LOCKED)
		platform_fetch_add_release(&lock->value, -QSPINLOCK_LOCKED);
}

#endif
