/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * rwlock.h - Linux's queued reader-writer lock: readers share; readers and writers that must wait queue together.
 *
 * Source: kernel/locking/qrwlock.c and include/asm-generic/qrwlock.h, Linux 7.2. The word counts readers from bit 9 up;
 * bit 8 is a writer that waits, the byte below a writer inside. Linux queues at a queued spinlock, here it is a ticket
 * lock: the same order without nodes. In interrupt context Linux lets readers pass a waiting writer; interrupt handlers
 * here take no lock. Fairness: FIFO among waiters; a reader enters at once if no writer waits or is inside. Limits:
 * fewer than 2^23 readers.
 */
#ifndef UNSPIN_LOCKS_RWLOCK_H
#define UNSPIN_LOCKS_RWLOCK_H

#include "ticket.h"

#define RWLOCK_WRITER 0xffu
#define RWLOCK_WRITER_WAITS 0x100u
#define RWLOCK_WRITER_MASK 0x1ffu
#define RWLOCK_READER 0x200u

struct rwlock_lock {
	struct platform_word count;
	struct ticket_lock queue; /* the queue: held by the first waiter */
};

/* Initialises the lock, before it is shared. */
static inline void rwlock_init(struct rwlock_lock *lock)
{
	platform_init(&lock->count, 0);
	ticket_init(&lock->queue);
}

/* Returns when the caller is the only one inside. The caller must not be inside already. */
static inline void rwlock_lock(struct rwlock_lock *lock)
{
	unspin_u32 count;

	if (platform_compare_exchange_acquire(&lock->count, 0, RWLOCK_WRITER) == 0)
		return;
	ticket_lock(&lock->queue);
	if (platform_compare_exchange_acquire(&lock->count, 0, RWLOCK_WRITER) != 0) {
		platform_fetch_or_ordered(&lock->count, RWLOCK_WRITER_WAITS);
		do {
			platform_wait_until(&lock->count, RWLOCK_WRITER_WAITS);
			count = platform_compare_exchange_acquire(&lock->count, RWLOCK_WRITER_WAITS, RWLOCK_WRITER);
		} while (count != RWLOCK_WRITER_WAITS);
	}
	ticket_unlock(&lock->queue);
}

/* Tries once; returns whether the caller is now the only one inside. */
static inline _Bool rwlock_trylock(struct rwlock_lock *lock)
{
	return platform_load_relaxed(&lock->count) == 0 &&
	       platform_compare_exchange_acquire(&lock->count, 0, RWLOCK_WRITER) == 0;
}

/* For the writer inside only; does nothing to a lock without a writer. */
static inline void rwlock_unlock(struct rwlock_lock *lock)
{
	if ((platform_load_relaxed(&lock->count) & RWLOCK_WRITER) == RWLOCK_WRITER)
		platform_fetch_add_release(&lock->count, -RWLOCK_WRITER);
}

/* Returns when the caller is inside as a reader. */
static inline void rwlock_read_lock(struct rwlock_lock *lock)
{
	unspin_u32 count = platform_fetch_add_ordered(&lock->count, RWLOCK_READER);

	if (!(count & RWLOCK_WRITER_MASK))
		return;
	/* A writer is inside or waits: undo, and queue. */
	platform_fetch_add_release(&lock->count, -RWLOCK_READER);
	ticket_lock(&lock->queue);
	count = platform_fetch_add_ordered(&lock->count, RWLOCK_READER) + RWLOCK_READER;
	/*
	 * First in the queue: no writer waits. One may still be inside, and no other can enter after it before the
	 * caller.
	 */
	while ((count & RWLOCK_WRITER) == RWLOCK_WRITER)
		count = platform_wait_while(&lock->count, count, PLATFORM_FOREVER);
	ticket_unlock(&lock->queue);
}

/* Tries once; returns whether the caller is now inside as a reader. */
static inline _Bool rwlock_read_trylock(struct rwlock_lock *lock)
{
	if (platform_load_relaxed(&lock->count) & RWLOCK_WRITER_MASK)
		return 0;
	if (!(platform_fetch_add_ordered(&lock->count, RWLOCK_READER) & RWLOCK_WRITER_MASK))
		return 1;
	platform_fetch_add_release(&lock->count, -RWLOCK_READER);
	return 0;
}

/* For a reader inside only; does nothing to a lock without readers. */
static inline void rwlock_read_unlock(struct rwlock_lock *lock)
{
	if (platform_load_relaxed(&lock->count) >= RWLOCK_READER)
		platform_fetch_add_release(&lock->count, -RWLOCK_READER);
}

/* Whether a task is inside or a writer waits. May be out of date when it returns, and implies no memory order. */
static inline _Bool rwlock_is_locked(const struct rwlock_lock *lock)
{
	return platform_load_relaxed(&lock->count) != 0;
}

#endif
