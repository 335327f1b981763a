/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * mutex.h - a blocking lock: one waiter spins while the holder runs, the others sleep in FIFO order.
 *
 * Source: kernel/locking/mutex.c, Linux 7.2. Optimistic spinning: one waiter at a time spins while the holder is on its
 * CPU; Linux queues further spinners (kernel/locking/osq_lock.c), here they contend to be that one. A free lock goes to
 * the task that takes it first, which may pass the sleepers, until the first sleeper has been woken without getting the
 * lock MUTEX_VAIN_WAKES times (Linux: once). Then it requests that the lock be handed to it (handoff), which costs a
 * context switch. From the wake-up of a sleeper until it has taken the lock or sleeps again, no other sleeper is woken
 * (as in glibc, whose unlock clears the flag of waiters; Linux wakes at each unlock). If a wrong pv page says that the
 * holder runs, the spin ends after MUTEX_SPINS_MAX rounds. Fairness: a sleeper that is first is passed at most until it
 * requests a handoff. Limits: task numbers below 2^16 - 2; tasks whose number is PLATFORM_WAITERS_MAX or more share a
 * place (place.h). The caller must hold no spinning lock.
 */
#ifndef UNSPIN_LOCKS_MUTEX_H
#define UNSPIN_LOCKS_MUTEX_H

#include "parts/wait_queue.h"

/* The holder word: the holder's task number + 1 (0: free), and three flags. */
#define MUTEX_TASK_MASK 0xffffu
#define MUTEX_WAITERS 0x80000000u /* a task sleeps: unlock must wake */
#define MUTEX_HANDOFF 0x40000000u /* only the first sleeper may take the lock */

#define MUTEX_WOKEN 0x20000000u /* a sleeper was woken and has not slept again: unlock need not wake */

/*
 * Our choice; other values were not measured. With 1, as in Linux, each operation cost a context switch once threads
 * contended for the lock.
 */
#ifndef MUTEX_VAIN_WAKES
#define MUTEX_VAIN_WAKES 16u
#endif
#ifndef MUTEX_SPINS_MAX
#define MUTEX_SPINS_MAX                                                                                                \
	4u /* rounds of WAITING_POLL_SPINS: 10,000 cycles or more, the cost of a sleep and a wake-up (E12) */
#endif

struct mutex_lock {
	struct platform_word holder;
	struct platform_word spinner; /* 1: a task spins for the holder */
	enum waiting_strategy strategy;
	struct wait_queue queue;
};

/* Initialises the lock, before it is shared; `strategy` says how queued waiters wait. */
static inline void mutex_init_strategy(struct mutex_lock *lock, enum waiting_strategy strategy)
{
	platform_init(&lock->holder, 0);
	platform_init(&lock->spinner, 0);
	lock->strategy = strategy;
	wait_queue_init(&lock->queue);
}

/* Initialises the lock, before it is shared. */
static inline void mutex_init(struct mutex_lock *lock)
{
	mutex_init_strategy(lock, WAITING_SLEEP);
}

/*
 * Takes the lock if it is free, and not to be handed over to another. `first`: the caller is the sleeper that requested
 * the handoff. Returns whether the caller holds the lock now, by this or because it was handed over.
 */
static inline _Bool mutex_take(struct mutex_lock *lock, unspin_u32 self, _Bool first)
{
	unspin_u32 value = platform_load_relaxed(&lock->holder), seen;

	for (;; value = seen) {
		if (value & MUTEX_TASK_MASK)
			/* Handed over: pairs with the ordered exchange in mutex_unlock_slow(). */
			return (value & MUTEX_TASK_MASK) == self && platform_load_acquire(&lock->holder) != 0;
		if ((value & MUTEX_HANDOFF) && !first)
			return 0;
		seen = platform_compare_exchange_ordered(&lock->holder, value, (value & ~MUTEX_HANDOFF) | self);
		if (seen == value)
			return 1;
	}
}

/*
 * Spins while the holder runs; for the one waiter that has lock->spinner. Returns whether the caller holds the lock
 * now.
 */
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

/* Waits in the queue until the caller holds the lock. Returns whether it requested a handoff. */
static inline _Bool mutex_wait(struct mutex_lock *lock, struct wait_node *node, unspin_u32 self)
{
	_Bool first = 0;

	for (unspin_u32 vain = 0; !mutex_take(lock, self, first);) {
		waiting_wait(lock->strategy, &node->asleep, 1);
		if (platform_load_acquire(&node->asleep) != 0)
			continue; /* spurious wake-up */
		if (mutex_take(lock, self, first))
			break;
		/*
		 * Ordered, and before MUTEX_WOKEN is cleared: a holder that unlocks after that sees this task asleep,
		 * and this task reads the lock once more.
		 */
		platform_exchange_ordered(&node->asleep, 1);
		first = ++vain >= MUTEX_VAIN_WAKES; /* only the first in the queue is woken */
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
	/*
	 * MUTEX_HANDOFF may have been set again after the handoff. No other task becomes first before this one leaves
	 * the queue.
	 */
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

/* Returns when the caller holds the lock. The caller must not hold it already. */
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

/* Returns whether the lock was taken. May take it while others sleep. */
static inline _Bool mutex_trylock(struct mutex_lock *lock)
{
	return !(platform_load_relaxed(&lock->holder) & MUTEX_TASK_MASK) && mutex_take(lock, platform_task() + 1, 0);
}

/* Whether the lock is held or waited for. May be out of date when it returns, and implies no memory order. */
static inline _Bool mutex_is_locked(const struct mutex_lock *lock)
{
	return platform_load_relaxed(&lock->holder) != 0;
}

/*
 * Wakes the first sleeper, if there is one. `handoff`: hands the lock to it; it cannot have left, since it waits for
 * the handoff.
 */
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

/*
 * For the holder only; does nothing to a lock that the caller does not hold. Release: the critical section is visible
 * to the next holder.
 */
static inline void mutex_unlock(struct mutex_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->holder), seen;

	if ((value & MUTEX_TASK_MASK) != platform_task() + 1)
		return;
	while (!(value & MUTEX_HANDOFF)) {
		/* The unlock that sets MUTEX_WOKEN wakes a sleeper; no other unlock does until the flag is cleared. */
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
