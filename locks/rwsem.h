/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * rwsem.h - a blocking reader-writer lock: waiters sleep in FIFO order; a writer first spins while the writer inside
 * runs.
 *
 * Source: kernel/locking/rwsem.c, Linux 7.2, with one rule of our own: as soon as a task sleeps, the lock is handed
 * over in order (to a writer, or to all readers up to the next writer). Linux lets other tasks take the lock past the
 * sleepers for a while and then does the same (handoff). So each wake-up gets the lock and no task starves, at the
 * price of a context switch at each handoff. The word counts readers from bit 8 up. If a wrong pv page says that the
 * writer runs, the spin ends after RWSEM_SPINS_MAX rounds. Limits: fewer than 2^24 readers; tasks whose number is
 * PLATFORM_WAITERS_MAX or more share a place (place.h). The caller must hold no spinning lock.
 */
#ifndef UNSPIN_LOCKS_RWSEM_H
#define UNSPIN_LOCKS_RWSEM_H

#include "parts/wait_queue.h"

#define RWSEM_WRITER 0x1u
#define RWSEM_WAITERS 0x2u /* a task sleeps: tasks enter only by handoff */
#define RWSEM_READER 0x100u

#ifndef RWSEM_SPINS_MAX
#define RWSEM_SPINS_MAX 4u /* as MUTEX_SPINS_MAX */
#endif

enum rwsem_kind { RWSEM_WANTS_WRITE = 0, RWSEM_WANTS_READ = 1 };

struct rwsem_lock {
	struct platform_word count;
	struct platform_word writer; /* task + 1 of the writer inside, read by spinners; 0: none */
	enum waiting_strategy strategy;
	struct wait_queue queue;
};

/* Initialises the lock, before it is shared; `strategy` says how queued waiters wait. */
static inline void rwsem_init_strategy(struct rwsem_lock *lock, enum waiting_strategy strategy)
{
	platform_init(&lock->count, 0);
	platform_init(&lock->writer, 0);
	lock->strategy = strategy;
	wait_queue_init(&lock->queue);
}

/* Initialises the lock, before it is shared. */
static inline void rwsem_init(struct rwsem_lock *lock)
{
	rwsem_init_strategy(lock, WAITING_SLEEP);
}

/* Guarded; the first sleeper is a writer: lets it in if the lock is free. Returns whether it is inside. */
static inline _Bool rwsem_grant_writer(struct rwsem_lock *lock)
{
	/*
	 * While a task sleeps only tasks inside change the word, so the only change that may be missed is that it
	 * becomes free.
	 */
	return platform_compare_exchange_ordered(&lock->count, RWSEM_WAITERS, RWSEM_WAITERS | RWSEM_WRITER) ==
	       RWSEM_WAITERS;
}

/* Guarded; the first sleeper is a reader: lets it in if no writer is inside. Returns whether it is inside. */
static inline _Bool rwsem_grant_reader(struct rwsem_lock *lock)
{
	if (platform_load_acquire(&lock->count) & RWSEM_WRITER)
		return 0;
	/* The ordered operation acquires: it pairs with the writer's release. No writer can enter without the guard. */
	platform_fetch_add_ordered(&lock->count, RWSEM_READER);
	return 1;
}

/* Guarded: hands the lock to the first sleeper, and to further readers, as far as it is free for them. */
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

/* Queues the caller and sleeps until the lock is handed over to it. */
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

/* A task has left, and the word then had the value `count`: if the lock is free and tasks sleep, hands it over. */
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

/* Tries once; returns whether the caller is now the only one inside. */
static inline _Bool rwsem_trylock(struct rwsem_lock *lock)
{
	if (platform_load_relaxed(&lock->count) != 0 ||
	    platform_compare_exchange_acquire(&lock->count, 0, RWSEM_WRITER) != 0)
		return 0;
	platform_store_relaxed(&lock->writer, platform_task() + 1);
	return 1;
}

/*
 * Spins while a writer is inside and runs, and no task sleeps. Returns whether the caller is now the only one inside.
 */
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

/* Returns when the caller is the only one inside. The caller must not be inside already. */
static inline void rwsem_lock(struct rwsem_lock *lock)
{
	unspin_u32 task = platform_task();

	if (rwsem_trylock(lock) || rwsem_spin(lock))
		return;
	rwsem_wait(lock, task, RWSEM_WANTS_WRITE);
	platform_store_relaxed(&lock->writer, task + 1);
}

/* For the writer inside only; does nothing to a lock without a writer. */
static inline void rwsem_unlock(struct rwsem_lock *lock)
{
	if (!(platform_load_relaxed(&lock->count) & RWSEM_WRITER))
		return;
	platform_store_relaxed(&lock->writer, 0);
	rwsem_gone(lock, platform_fetch_add_ordered(&lock->count, -RWSEM_WRITER) - RWSEM_WRITER);
}

/* For a reader inside only; does nothing to a lock without readers. */
static inline void rwsem_read_unlock(struct rwsem_lock *lock)
{
	if (platform_load_relaxed(&lock->count) < RWSEM_READER)
		return;
	rwsem_gone(lock, platform_fetch_add_ordered(&lock->count, -RWSEM_READER) - RWSEM_READER);
}

/* Tries once; returns whether the caller is now inside as a reader. Fails if a task sleeps. */
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

/* Returns when the caller is inside as a reader. */
static inline void rwsem_read_lock(struct rwsem_lock *lock)
{
	if (!rwsem_read_trylock(lock))
		rwsem_wait(lock, platform_task(), RWSEM_WANTS_READ);
}

/* Whether a task is inside or sleeps. May be out of date when it returns, and implies no memory order. */
static inline _Bool rwsem_is_locked(const struct rwsem_lock *lock)
{
	return platform_load_relaxed(&lock->count) != 0;
}

#endif
