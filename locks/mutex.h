/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * mutex.h - a lock whose waiters sleep, after spinning for a holder that runs.
 *
 * Source: kernel/locking/mutex.c, Linux 7.2. Optimistic spinning: one waiter at a time spins while the holder is on its CPU; Linux
 * queues further spinners (kernel/locking/osq_lock.c), here they contend for that one place. Everybody else sleeps in order. A free
 * lock goes to the task that takes it first, thieves included, until the first sleeper has been woken in vain MUTEX_VAIN_WAKES times
 * (Linux: once): it then asks to be handed the lock (handoff), which costs a switch. While a woken sleeper is on its
 * way no other is woken (as glibc's, whose unlock clears the mark of waiters; Linux wakes at each unlock).
 * A holder that a wrong pv page calls running is spun for at most MUTEX_SPINS_MAX spins.
 * Fairness: a sleeper is passed only until it is first and has tried that often. Limits: tasks below 2^16 - 2.
 * A task whose number is PLATFORM_WAITERS_MAX or more shares a place (place.h). Spinning locks must not be held.
 */
#ifndef UNSPIN_LOCKS_MUTEX_H
#define UNSPIN_LOCKS_MUTEX_H

#include "parts/wait_queue.h"

/* Of the holder's word: its task + 1, and three flags. */
#define MUTEX_TASK_MASK 0xffffu
#define MUTEX_WAITERS 0x80000000u /* a task sleeps: unlock must wake */
#define MUTEX_HANDOFF 0x40000000u /* the first sleeper alone may take it */

#define MUTEX_WOKEN 0x20000000u /* a sleeper was granted and has not slept again: unlock need not wake */

/* Ours, and not swept: with 1, as Linux has it, every operation cost a switch once the lock was contended by threads. */
#ifndef MUTEX_VAIN_WAKES
#define MUTEX_VAIN_WAKES 16u
#endif
#ifndef MUTEX_SPINS_MAX
#define MUTEX_SPINS_MAX                                                                                                \
	4u /* of WAITING_POLL_SPINS: some 10,000 cycles or more, what a sleep and a wake-up cost (E12) */
#endif

struct mutex_lock {
	struct platform_word holder;
	struct platform_word spinner; /* 1: a task spins for the holder */
	enum waiting_strategy strategy;
	struct wait_queue queue;
};

/* Before the lock is shared, with a strategy of queued waiters. */
static inline void mutex_init_strategy(struct mutex_lock *lock, enum waiting_strategy strategy)
{
	platform_init(&lock->holder, 0);
	platform_init(&lock->spinner, 0);
	lock->strategy = strategy;
	wait_queue_init(&lock->queue);
}

/* Before the lock is shared. */
static inline void mutex_init(struct mutex_lock *lock)
{
	mutex_init_strategy(lock, WAITING_SLEEP);
}

/*
 * Takes the lock if it is free, and not about to be handed over. `first`: the caller is the first sleeper, to which the
 * hand-over would go. Whether the caller holds it now, by this or because it was handed over.
 */
static inline _Bool mutex_take(struct mutex_lock *lock, unspin_u32 self, _Bool first)
{
	unspin_u32 value = platform_load_relaxed(&lock->holder), seen;

	for (;; value = seen) {
		if (value & MUTEX_TASK_MASK)
			/* Handed over: the ordered exchange of the one before. */
			return (value & MUTEX_TASK_MASK) == self && platform_load_acquire(&lock->holder) != 0;
		if ((value & MUTEX_HANDOFF) && !first)
			return 0;
		seen = platform_compare_exchange_ordered(&lock->holder, value, (value & ~MUTEX_HANDOFF) | self);
		if (seen == value)
			return 1;
	}
}

/* Spins as the one spinner while the holder runs. Whether the caller holds the lock now. */
static inline _Bool mutex_spin(struct mutex_lock *lock, unspin_u32 self)
{
	for (unspin_u32 spins = 0; spins < MUTEX_SPINS_MAX; spins++) {
		unspin_u32 value = platform_load_relaxed(&lock->holder);

		if (!(value & MUTEX_TASK_MASK)) {
			if (mutex_take(lock, self, 0))
				return 1;
			if (value & MUTEX_HANDOFF)
				return 0;
		} else if (!platform_task_runs((value & MUTEX_TASK_MASK) - 1) || platform_runnable_tasks() > 1) {
			return 0;
		} else {
			platform_wait_while(&lock->holder, value, WAITING_POLL_SPINS);
		}
	}
	return 0;
}

/* In the queue until it holds the lock. Whether it had asked for the lock to be handed over. */
static inline _Bool mutex_wait(struct mutex_lock *lock, struct wait_node *node, unspin_u32 self)
{
	_Bool first = 0;

	for (unspin_u32 vain = 0; !mutex_take(lock, self, first);) {
		waiting_wait(lock->strategy, &node->asleep, 1);
		if (platform_load_acquire(&node->asleep) != 0)
			continue; /* without cause */
		if (mutex_take(lock, self, first))
			break;
		/* Ordered, and before the flag falls: a holder that unlocks after that finds us asleep, and we read once more. */
		platform_exchange_ordered(&node->asleep, 1);
		first = ++vain >= MUTEX_VAIN_WAKES; /* only the first is granted */
		if (first)
			platform_fetch_or_ordered(&lock->holder, MUTEX_HANDOFF);
		platform_fetch_and_ordered(&lock->holder, ~MUTEX_WOKEN);
	}
	return first;
}

static inline void mutex_lock_slow(struct mutex_lock *lock, unspin_u32 task)
{
	unspin_u32 place = place_take(&lock->queue.shared, task), over = 0;
	struct wait_node *node = &lock->queue.nodes[place];

	wait_queue_guard(&lock->queue);
	wait_queue_add(&lock->queue, place, task, 0);
	platform_fetch_or_ordered(&lock->holder, MUTEX_WAITERS);
	wait_queue_release(&lock->queue);
	/* The flag may have been raised once more after the lock was handed over. No other is first before we leave. */
	if (mutex_wait(lock, node, task + 1))
		over |= MUTEX_HANDOFF;
	wait_queue_guard(&lock->queue);
	wait_queue_remove(&lock->queue, place);
	if (platform_load_relaxed(&node->asleep) == 0)
		over |= MUTEX_WOKEN;
	if (wait_queue_first(&lock->queue) == PLACES)
		over |= MUTEX_WAITERS;
	if (over)
		platform_fetch_and_ordered(&lock->holder, ~over);
	wait_queue_release(&lock->queue);
	place_leave(&lock->queue.shared, task);
}

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void mutex_lock(struct mutex_lock *lock)
{
	unspin_u32 task = platform_task();
	_Bool held;

	if (platform_compare_exchange_acquire(&lock->holder, 0, task + 1) == 0)
		return;
	if (platform_exchange_acquire(&lock->spinner, 1) == 0) {
		held = mutex_spin(lock, task + 1);
		platform_store_release(&lock->spinner, 0);
		if (held)
			return;
	}
	mutex_lock_slow(lock, task);
}

/* Whether the lock was taken. It may be while others sleep. */
static inline _Bool mutex_trylock(struct mutex_lock *lock)
{
	return !(platform_load_relaxed(&lock->holder) & MUTEX_TASK_MASK) && mutex_take(lock, platform_task() + 1, 0);
}

/* A sample: held or waited for. It may be out of date when it returns, and orders nothing. */
static inline _Bool mutex_is_locked(const struct mutex_lock *lock)
{
	return platform_load_relaxed(&lock->holder) != 0;
}

/* Grants the first sleeper, if there is one still; `handoff`: and hands it the lock, which only a sleeper that stays requests. */
static inline void mutex_unlock_slow(struct mutex_lock *lock, _Bool handoff)
{
	struct wait_queue_granted to_wake = {0};
	unspin_u32 first;

	wait_queue_guard(&lock->queue);
	first = wait_queue_first(&lock->queue);
	if (first != PLACES) {
		unspin_u32 self = platform_load_relaxed(&lock->queue.nodes[first].task) + 1;

		if (handoff)
			platform_exchange_ordered(&lock->holder, MUTEX_WAITERS | MUTEX_WOKEN | self);
		wait_queue_grant(&lock->queue, first, &to_wake);
	} else {
		platform_fetch_and_ordered(&lock->holder, ~MUTEX_WOKEN);
	}
	wait_queue_release(&lock->queue);
	wait_queue_wake(to_wake);
}

/* By the holder only; a lock that the caller does not hold stays as it is. Release: the next holder sees the critical section. */
static inline void mutex_unlock(struct mutex_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->holder), seen;

	if ((value & MUTEX_TASK_MASK) != platform_task() + 1)
		return;
	while (!(value & MUTEX_HANDOFF)) {
		/* The holder that unlocks raises the flag, and alone wakes until it falls. */
		unspin_u32 wakes = (value & (MUTEX_WAITERS | MUTEX_WOKEN)) == MUTEX_WAITERS ? MUTEX_WOKEN : 0;

		seen = platform_compare_exchange_ordered(&lock->holder, value, (value & ~MUTEX_TASK_MASK) | wakes);
		if (seen == value) {
			if (wakes)
				mutex_unlock_slow(lock, 0);
			return;
		}
		value = seen;
	}
	mutex_unlock_slow(lock, 1);
}

#endif
