/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * rwsem.h - a reader-writer lock whose waiters sleep, in order; a writer spins first for a writer that runs.
 *
 * Source: kernel/locking/rwsem.c, Linux 7.2, with one rule of our own: as soon as somebody sleeps, the lock is handed on in order (a
 * writer, or all readers up to the next writer), where Linux lets thieves in for a while and then does the same (handoff). So no
 * wake-up is in vain and nobody starves, at the price of a switch at each hand-over. The word counts readers from bit 8 up.
 * A holder that a wrong pv page calls running is spun for at most RWSEM_SPINS_MAX looks. Limits: fewer than 2^24 readers; a task
 * whose number is PLATFORM_WAITERS_MAX or more shares a place (place.h). Spinning locks must not be held.
 */
#ifndef UNSPIN_LOCKS_RWSEM_H
#define UNSPIN_LOCKS_RWSEM_H

#include "parts/wait_queue.h"

#define RWSEM_WRITER 0x1u
#define RWSEM_WAITERS 0x2u /* somebody sleeps: nobody goes in but by being handed the lock */
#define RWSEM_READER 0x100u

#ifndef RWSEM_SPINS_MAX
#define RWSEM_SPINS_MAX 4u /* as MUTEX_SPINS_MAX */
#endif

enum rwsem_kind { RWSEM_WANTS_WRITE = 0, RWSEM_WANTS_READ = 1 };

struct rwsem_lock {
	struct platform_word count;
	struct platform_word writer; /* task + 1 of the writer inside, a pv page for spinners; 0: none */
	enum waiting_strategy strategy;
	struct wait_queue queue;
};

/* Before the lock is shared, with a strategy of queued waiters. */
static inline void rwsem_init_strategy(struct rwsem_lock *lock, enum waiting_strategy strategy)
{
	platform_init(&lock->count, 0);
	platform_init(&lock->writer, 0);
	lock->strategy = strategy;
	wait_queue_init(&lock->queue);
}

/* Before the lock is shared. */
static inline void rwsem_init(struct rwsem_lock *lock)
{
	rwsem_init_strategy(lock, WAITING_SLEEP);
}

/* Guarded, the first sleeper is a writer: whether it is inside now. */
static inline _Bool rwsem_grant_writer(struct rwsem_lock *lock)
{
	/* While somebody sleeps only whoever is inside changes the word, so it can only become free behind our back. */
	return platform_compare_exchange_ordered(&lock->count, RWSEM_WAITERS, RWSEM_WAITERS | RWSEM_WRITER) ==
	       RWSEM_WAITERS;
}

/* Guarded, the first sleeper is a reader: whether it is inside now. */
static inline _Bool rwsem_grant_reader(struct rwsem_lock *lock)
{
	if (platform_load_acquire(&lock->count) & RWSEM_WRITER)
		return 0;
	/* Acquire: pairs with the writer's release, through the ordered operation. No writer comes in but by a guard. */
	platform_fetch_add_ordered(&lock->count, RWSEM_READER);
	return 1;
}

/* Guarded: lets in whoever is first, as far as the lock allows. */
static inline void rwsem_grant(struct rwsem_lock *lock, struct wait_queue_granted *to_wake)
{
	for (;;) {
		unspin_u32 first = wait_queue_first(&lock->queue);
		_Bool reads, granted;

		if (first == PLACES) {
			platform_fetch_and_ordered(&lock->count, ~RWSEM_WAITERS);
			return;
		}
		reads = platform_load_relaxed(&lock->queue.nodes[first].kind) == RWSEM_WANTS_READ;
		granted = reads ? rwsem_grant_reader(lock) : rwsem_grant_writer(lock);
		if (!granted)
			return;
		wait_queue_remove(&lock->queue, first);
		wait_queue_grant(&lock->queue, first, to_wake);
	}
}

/* Sleeps until the lock is handed over. */
static inline void rwsem_wait(struct rwsem_lock *lock, unspin_u32 task, enum rwsem_kind kind)
{
	unspin_u32 place = place_take(&lock->queue.shared, task);
	struct wait_node *node = &lock->queue.nodes[place];
	struct wait_queue_granted to_wake = {0};

	wait_queue_guard(&lock->queue);
	wait_queue_add(&lock->queue, place, task, kind);
	platform_fetch_or_ordered(&lock->count, RWSEM_WAITERS);
	rwsem_grant(lock, &to_wake); /* it may have become free before we were in the queue */
	wait_queue_release(&lock->queue);
	wait_queue_wake(to_wake);
	while (platform_load_acquire(&node->asleep) != 0)
		waiting_wait(lock->strategy, &node->asleep, 1);
	place_leave(&lock->queue.shared, task);
}

/* A task has left and the word was this afterwards: if it is free and tasks sleep, they are next. */
static inline void rwsem_gone(struct rwsem_lock *lock, unspin_u32 count)
{
	struct wait_queue_granted to_wake = {0};

	if (count != RWSEM_WAITERS)
		return;
	wait_queue_guard(&lock->queue);
	rwsem_grant(lock, &to_wake);
	wait_queue_release(&lock->queue);
	wait_queue_wake(to_wake);
}

/* Whether the caller is the only one inside now. */
static inline _Bool rwsem_trylock(struct rwsem_lock *lock)
{
	if (platform_load_relaxed(&lock->count) != 0 ||
	    platform_compare_exchange_acquire(&lock->count, 0, RWSEM_WRITER) != 0)
		return 0;
	platform_store_relaxed(&lock->writer, platform_task() + 1);
	return 1;
}

/* Spins while a writer is inside and runs, and nobody sleeps. Whether the caller is the only one inside now. */
static inline _Bool rwsem_spin(struct rwsem_lock *lock)
{
	for (unspin_u32 spins = 0; spins < RWSEM_SPINS_MAX; spins++) {
		unspin_u32 count = platform_load_relaxed(&lock->count), writer;

		if (rwsem_trylock(lock))
			return 1;
		writer = platform_load_relaxed(&lock->writer);
		if (count != RWSEM_WRITER || writer == 0 || !platform_task_runs(writer - 1) ||
		    platform_runnable_tasks() > 1)
			return 0;
		platform_wait_while(&lock->count, count, WAITING_POLL_SPINS);
	}
	return 0;
}

/* Returns when the caller is the only one inside. It must not be inside already. */
static inline void rwsem_lock(struct rwsem_lock *lock)
{
	unspin_u32 task = platform_task();

	if (rwsem_trylock(lock) || rwsem_spin(lock))
		return;
	rwsem_wait(lock, task, RWSEM_WANTS_WRITE);
	platform_store_relaxed(&lock->writer, task + 1);
}

/* By the writer inside only; a lock without one stays as it is. */
static inline void rwsem_unlock(struct rwsem_lock *lock)
{
	if (!(platform_load_relaxed(&lock->count) & RWSEM_WRITER))
		return;
	platform_store_relaxed(&lock->writer, 0);
	rwsem_gone(lock, platform_fetch_add_ordered(&lock->count, -RWSEM_WRITER) - RWSEM_WRITER);
}

/* By a reader inside only; a lock without one stays as it is. */
static inline void rwsem_read_unlock(struct rwsem_lock *lock)
{
	if (platform_load_relaxed(&lock->count) < RWSEM_READER)
		return;
	rwsem_gone(lock, platform_fetch_add_ordered(&lock->count, -RWSEM_READER) - RWSEM_READER);
}

/* Whether the caller is inside now, with no writer, and passed no sleeper. */
static inline _Bool rwsem_read_trylock(struct rwsem_lock *lock)
{
	unspin_u32 count = platform_load_relaxed(&lock->count), seen;

	for (; !(count & (RWSEM_WRITER | RWSEM_WAITERS)); count = seen) {
		seen = platform_compare_exchange_ordered(&lock->count, count, count + RWSEM_READER);
		if (seen == count)
			return 1;
	}
	return 0;
}

/* Returns when the caller is inside, with no writer. */
static inline void rwsem_read_lock(struct rwsem_lock *lock)
{
	if (!rwsem_read_trylock(lock))
		rwsem_wait(lock, platform_task(), RWSEM_WANTS_READ);
}

/* A sample: a task is inside or sleeps. It may be out of date when it returns, and orders nothing. */
static inline _Bool rwsem_is_locked(const struct rwsem_lock *lock)
{
	return platform_load_relaxed(&lock->count) != 0;
}

#endif
