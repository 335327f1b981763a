/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * qspinlock.h - Linux's queued spinlock: one word, a waiter that needs no queue (pending), an MCS queue behind it.
 *
 * Source: kernel/locking/qspinlock.c and include/asm-generic/qspinlock_types.h, Linux 7.2; after Long and Zijlstra (2014). Of the
 * word, bit 0 is the lock, bit 8 the waiter that is next, the upper half the last of the queue (place + 1). Linux writes the
 * lock's byte alone; here the word is written by atomic operations. Nodes lie in the lock (place.h), Linux's on each CPU,
 * four deep: past them Linux spins without a place, as our waiters with a number too great do. Fairness: FIFO but for the pending one.
 */
#ifndef UNSPIN_LOCKS_QSPINLOCK_H
#define UNSPIN_LOCKS_QSPINLOCK_H

#include "parts/place.h"

#define QSPINLOCK_LOCKED 0x1u
#define QSPINLOCK_PENDING 0x100u
#define QSPINLOCK_LOCKED_MASK 0xffu
#define QSPINLOCK_TAIL_MASK 0xffff0000u
#define QSPINLOCK_TAIL_SHIFT 16
/* Spins in which a hand-over from pending to locked is waited for: _Q_PENDING_LOOPS, arch/x86/include/asm/qspinlock.h. */
#define QSPINLOCK_PENDING_SPINS (1u << 9)

struct qspinlock_node {
	struct platform_word next __attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* place + 1; 0: none yet */
	struct platform_word waits; /* 1 until it is first in the queue */
};

struct qspinlock_lock {
	struct platform_word value;
	struct platform_word shared; /* place.h */
	struct qspinlock_node nodes[PLACES];
};

/* Before the lock is shared. */
static inline void qspinlock_init(struct qspinlock_lock *lock)
{
	platform_init(&lock->value, 0);
	platform_init(&lock->shared, 0);
	for (unspin_u32 i = 0; i < PLACES; i++) {
		platform_init(&lock->nodes[i].next, 0);
		platform_init(&lock->nodes[i].waits, 0);
	}
}

/* Waits until none of the bits is set; the value seen then. */
static inline unspin_u32 qspinlock_wait_clear(const struct platform_word *word, unspin_u32 bits)
{
	unspin_u32 value = platform_load_acquire(word);

	while (value & bits)
		value = platform_wait_while(word, value, PLATFORM_FOREVER);
	return value;
}

/* Makes `place` the last of the queue; the tail before, in place. */
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

/* Tries to wait as the pending one, without a place in the queue. Returns whether the lock is held. */
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

/* First in the queue and the lock is free: takes it and makes the one behind the first. */
static inline void qspinlock_claim(struct qspinlock_lock *lock, unspin_u32 place, unspin_u32 value)
{
	struct qspinlock_node *node = &lock->nodes[place];
	unspin_u32 next;

	/* The last: the queue is empty. The acquire load that saw the lock free orders what follows. */
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

/* Returns when the caller holds the lock. It must not hold it already. */
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

/* A sample: held or waited for. It may be out of date when it returns, and orders nothing. */
static inline _Bool qspinlock_is_locked(const struct qspinlock_lock *lock)
{
	return platform_load_relaxed(&lock->value) != 0;
}

/* By the holder only; a lock that is not held stays as it is. Release: the next holder sees the critical section. */
static inline void qspinlock_unlock(struct qspinlock_lock *lock)
{
	if (platform_load_relaxed(&lock->value) & QSPINLOCK_LOCKED)
		platform_fetch_add_release(&lock->value, -QSPINLOCK_LOCKED);
}

#endif
