/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * adaptive_rwlock.h - ours: a reader-writer lock of 20 bytes whose waiters spin for a while and then sleep. Readers share it;
 * a reader enters unless a writer is inside, or, if the caller asks for that, waits.
 *
 * Who unlocks wakes all readers and one writer that sleep; who comes first enters. So writers may starve while readers
 * come and go, unless readers keep off for them.
 *
 * Why no wake-up is lost: a sleeper counts itself (a full barrier), reads its event, then the state, and blocks while the
 * event is what it was. Who frees the lock changes the state (a full barrier), then reads the counts, and changes the event
 * before it wakes. A writer that is woken finds the lock free and takes it, or held, by one whose unlock wakes the next.
 *
 * Limits: 2^24 - 1 readers, of which the caller takes care; marks below PLATFORM_MARKS. The caller must hold no spinning
 * lock. In a world that does not wait by address (platform_block()) waiters spin and ask for help instead of sleeping.
 */
#ifndef UNSPIN_LOCKS_ADAPTIVE_RWLOCK_H
#define UNSPIN_LOCKS_ADAPTIVE_RWLOCK_H

#include "../parts/waiter_count.h"

/* The state word: 0, free; the number of readers; or WRITER and the writer's mark. */
#define ADAPTIVE_RWLOCK_WRITER 0x80000000u
#define ADAPTIVE_RWLOCK_MARK 0x7fffu
#define ADAPTIVE_RWLOCK_READERS_MAX 0xffffffu

/* Spins before a waiter sleeps: about the cost of a sleep and a wake-up (E12). */
#ifndef ADAPTIVE_RWLOCK_SPINS
#define ADAPTIVE_RWLOCK_SPINS 128u
#endif

struct adaptive_rwlock_lock {
	struct platform_word state;
	struct platform_word readers,
		reader_event; /* how many readers sleep, or are about to (waiter_count.h); what they wait for */
	struct platform_word writers, writer_event; /* the same of writers */
};

/* Initialises the lock, before it is shared. */
static inline void adaptive_rwlock_init(struct adaptive_rwlock_lock *lock)
{
	platform_init(&lock->state, 0);
	platform_init(&lock->readers, 0);
	platform_init(&lock->reader_event, 0);
	platform_init(&lock->writers, 0);
	platform_init(&lock->writer_event, 0);
}

/* Takes the lock for writing if nobody is inside. */
static inline _Bool adaptive_rwlock_trylock(struct adaptive_rwlock_lock *lock)
{
	return platform_load_relaxed(&lock->state) == 0 &&
	       platform_compare_exchange_acquire(&lock->state, 0, ADAPTIVE_RWLOCK_WRITER | platform_mark()) == 0;
}

/* Whether somebody is inside. May be out of date when it returns, and implies no memory order. */
static inline _Bool adaptive_rwlock_is_locked(const struct adaptive_rwlock_lock *lock)
{
	return platform_load_relaxed(&lock->state) != 0;
}

/* Enters as a reader, unless a writer is inside, or `keeps_off` and a writer waits. */
static inline _Bool adaptive_rwlock_try_read(struct adaptive_rwlock_lock *lock, _Bool keeps_off)
{
	unspin_u32 value = platform_load_relaxed(&lock->state), seen;

	for (;; value = seen) {
		if ((value & ADAPTIVE_RWLOCK_WRITER) || (keeps_off && waiter_count_load(&lock->writers)))
			return 0;
		seen = platform_compare_exchange_acquire(&lock->state, value, value + 1);
		if (seen == value)
			return 1;
	}
}

/* What a waiter does: enters if it can, as a reader or as a writer. */
struct adaptive_rwlock_entry {
	_Bool reads;
	_Bool keeps_off;
	const void *deadline; /* of platform_block(); 0: none */
};

static inline _Bool adaptive_rwlock_enters(struct adaptive_rwlock_lock *lock, const struct adaptive_rwlock_entry *entry)
{
	return entry->reads ? adaptive_rwlock_try_read(lock, entry->keeps_off) : adaptive_rwlock_trylock(lock);
}

/* Spins while no writer is inside that does not run. Returns whether the caller has entered. */
static inline _Bool adaptive_rwlock_spin(struct adaptive_rwlock_lock *lock, const struct adaptive_rwlock_entry *entry)
{
	unspin_u32 pause = 1;

	for (unspin_u32 spins = 0; spins < ADAPTIVE_RWLOCK_SPINS; spins += pause, pause *= 2) {
		unspin_u32 value = platform_load_relaxed(&lock->state);

		if ((value & ADAPTIVE_RWLOCK_WRITER) && !platform_mark_runs(value & ADAPTIVE_RWLOCK_MARK))
			return 0;
		if (adaptive_rwlock_enters(lock, entry))
			return 1;
		platform_pause(pause);
	}
	return 0;
}

/* Wakes the readers that sleep, and one writer. */
#define ADAPTIVE_RWLOCK_SLOW static __attribute__((noinline, unused))
ADAPTIVE_RWLOCK_SLOW void adaptive_rwlock_wake(struct adaptive_rwlock_lock *lock)
{
	if (waiter_count_load(&lock->readers)) {
		platform_fetch_add_ordered(&lock->reader_event, 1);
		platform_unblock_all(&lock->reader_event);
	}
	if (waiter_count_load(&lock->writers)) {
		platform_fetch_add_ordered(&lock->writer_event, 1);
		platform_unblock(&lock->writer_event);
	}
}

/* Waits until the caller is inside (returns 1), or until the deadline has passed (0). */
ADAPTIVE_RWLOCK_SLOW _Bool adaptive_rwlock_wait(struct adaptive_rwlock_lock *lock,
						const struct adaptive_rwlock_entry *entry)
{
	struct platform_word *count = entry->reads ? &lock->readers : &lock->writers;
	struct platform_word *event = entry->reads ? &lock->reader_event : &lock->writer_event;
	_Bool in_time = 1, is_in;

	if (adaptive_rwlock_spin(lock, entry))
		return 1;
	waiter_count_change(count, 1);
	for (;;) {
		unspin_u32 before = platform_load_acquire(event);

		is_in = adaptive_rwlock_enters(lock, entry);
		if (is_in || !in_time)
			break;
		in_time = platform_block(event, before, entry->deadline);
	}
	waiter_count_change(count, -1u);
	/* Readers that kept off for this writer alone wait for nobody else. */
	if (!is_in && !entry->reads)
		adaptive_rwlock_wake(lock);
	return is_in;
}

/* Returns when the caller is inside alone. The caller must not be inside already. */
static inline void adaptive_rwlock_lock(struct adaptive_rwlock_lock *lock)
{
	struct adaptive_rwlock_entry entry = {0};

	if (!adaptive_rwlock_trylock(lock))
		adaptive_rwlock_wait(lock, &entry);
}

/* Returns when the caller is inside as a reader. */
static inline void adaptive_rwlock_read_lock(struct adaptive_rwlock_lock *lock)
{
	struct adaptive_rwlock_entry entry = {.reads = 1};

	if (!adaptive_rwlock_try_read(lock, 0))
		adaptive_rwlock_wait(lock, &entry);
}

/* Enters as a reader unless a writer is inside. */
static inline _Bool adaptive_rwlock_read_trylock(struct adaptive_rwlock_lock *lock)
{
	return adaptive_rwlock_try_read(lock, 0);
}

/* Whether anybody sleeps; after the lock was freed by an ordered operation. */
static inline void adaptive_rwlock_freed(struct adaptive_rwlock_lock *lock)
{
	/* A count of 0 may have the bits of a generation: then there is nobody to wake. */
	if (__builtin_expect((platform_load_relaxed(&lock->readers) | platform_load_relaxed(&lock->writers)) != 0, 0))
		adaptive_rwlock_wake(lock);
}

/* For a writer. Does nothing to a lock in which no writer is. */
static inline void adaptive_rwlock_unlock(struct adaptive_rwlock_lock *lock)
{
	if (!(platform_load_relaxed(&lock->state) & ADAPTIVE_RWLOCK_WRITER))
		return;
	platform_exchange_ordered(&lock->state, 0);
	adaptive_rwlock_freed(lock);
}

/* For a reader. */
static inline void adaptive_rwlock_read_unlock(struct adaptive_rwlock_lock *lock)
{
	if (platform_fetch_add_ordered(&lock->state, -1u) == 1)
		adaptive_rwlock_freed(lock);
}

#endif
