/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * adaptive_rwlock.h - ours: a reader-writer lock of 16 bytes whose waiters spin for a while and then sleep. Readers share
 * it; a reader enters unless a writer is inside, or, if the caller asks for that, waits (it keeps off).
 *
 * Who frees the lock wakes all readers and one writer that sleep; who comes first enters. So writers may starve while readers
 * come and go, unless readers keep off for them.
 *
 * Why no wake-up is lost. A sleeper counts itself in `waits` (a full barrier) and then reads what it waits for:
 * - A writer sleeps at `waits` while that is what it was before the writer looked at the lock, and has no WOKEN. Who frees
 *   the lock sets WOKEN in the same instruction. While WOKEN is set one of them is awake: it clears WOKEN before it looks at
 *   the lock again.
 * - A reader sleeps at `state` while that has the value of the writer inside, whose unlock changes it and sees the count.
 * - A reader that keeps off sleeps at `kept` while that is what it was before the reader saw that a writer waits. The last
 *   such writer changes it when it has entered or gives up.
 *
 * The instruction that frees the lock reads and writes `waits`, too, and is the last access of an unlock: who has the lock
 * next may give its memory back, as POSIX allows (pthread_rwlock_destroy). The wake-up that follows names an address only.
 *
 * Limits: 2^24 - 1 readers inside, of which the caller takes care; 8,191 sleepers of each kind, others ask for help; marks
 * below PLATFORM_MARKS. A process that is the sixteenth fork on the way takes the counts of its first ancestor for its own. The
 * caller must hold no spinning lock. In a world that does not wait by address (platform_block()) waiters spin and ask for
 * help instead of sleeping.
 */
#ifndef UNSPIN_LOCKS_ADAPTIVE_RWLOCK_H
#define UNSPIN_LOCKS_ADAPTIVE_RWLOCK_H

#include "../platform/contract.h"

/* The state word: 0, free; the number of readers; or WRITER and the writer's mark. */
#define ADAPTIVE_RWLOCK_WRITER 0x80000000u
#define ADAPTIVE_RWLOCK_MARK 0x7fffu
#define ADAPTIVE_RWLOCK_READERS_MAX 0xffffffu

/*
 * The waits word: two flags, how many readers and writers sleep or are about to, and the process by its generation
 * (platform_generation()). In a forked process the word of another generation is that of threads which are not there.
 */
#define ADAPTIVE_RWLOCK_WOKEN 1u /* a writer that sleeps is awake, or will be */
#define ADAPTIVE_RWLOCK_KEPT 2u	 /* readers among them keep off for writers */
#define ADAPTIVE_RWLOCK_ONE_READER 4u
#define ADAPTIVE_RWLOCK_READERS 0x7ffcu
#define ADAPTIVE_RWLOCK_ONE_WRITER 0x8000u
#define ADAPTIVE_RWLOCK_WRITERS 0xfff8000u
#define ADAPTIVE_RWLOCK_GENERATION_SHIFT 28

/* Spins before a waiter sleeps: about the cost of a sleep and a wake-up (E12). */
#ifndef ADAPTIVE_RWLOCK_SPINS
#define ADAPTIVE_RWLOCK_SPINS 128u
#endif

/* Apart from the functions that callers call, which save no registers then. */
#define ADAPTIVE_RWLOCK_SLOW static __attribute__((noinline, unused))

/* Aligned, since an unlock accesses two words at once. */
struct adaptive_rwlock_lock {
	struct platform_word state;
	struct platform_word waits;
	struct platform_word kept;
} __attribute__((aligned(8)));

/* Initialises the lock, before it is shared. */
static inline void adaptive_rwlock_init(struct adaptive_rwlock_lock *lock)
{
	platform_init(&lock->state, 0);
	platform_init(&lock->waits, 0);
	platform_init(&lock->kept, 0);
}

static inline unspin_u32 adaptive_rwlock_generation(void)
{
	return platform_generation() << ADAPTIVE_RWLOCK_GENERATION_SHIFT;
}

/* What a value of `waits` says of this process: nobody sleeps if it is of a process from which this one was forked. */
static inline unspin_u32 adaptive_rwlock_here(unspin_u32 waits)
{
	unspin_u32 generation = adaptive_rwlock_generation();

	return waits >> ADAPTIVE_RWLOCK_GENERATION_SHIFT == generation >> ADAPTIVE_RWLOCK_GENERATION_SHIFT ? waits
													   : generation;
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

/* Whether a writer sleeps, or is about to. */
static inline _Bool adaptive_rwlock_writer_waits(const struct adaptive_rwlock_lock *lock)
{
	return adaptive_rwlock_here(platform_load_relaxed(&lock->waits)) & ADAPTIVE_RWLOCK_WRITERS;
}

/* Enters as a reader, unless a writer is inside, or `keeps_off` and a writer waits. */
static inline _Bool adaptive_rwlock_try_read(struct adaptive_rwlock_lock *lock, _Bool keeps_off)
{
	unspin_u32 value = platform_load_relaxed(&lock->state), seen;

	for (;; value = seen) {
		if ((value & ADAPTIVE_RWLOCK_WRITER) || (keeps_off && adaptive_rwlock_writer_waits(lock)))
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

/* Counts the caller as a sleeper. Returns 0 if there are too many. */
static inline _Bool adaptive_rwlock_join(struct adaptive_rwlock_lock *lock, const struct adaptive_rwlock_entry *entry)
{
	unspin_u32 counts = entry->reads ? ADAPTIVE_RWLOCK_READERS : ADAPTIVE_RWLOCK_WRITERS;
	unspin_u32 one = entry->reads ? ADAPTIVE_RWLOCK_ONE_READER : ADAPTIVE_RWLOCK_ONE_WRITER;
	unspin_u32 value = platform_load_relaxed(&lock->waits), seen, here;

	for (;; value = seen) {
		here = adaptive_rwlock_here(value);
		if ((here & counts) == counts)
			return 0;
		here += one;
		if (entry->reads && entry->keeps_off)
			here |= ADAPTIVE_RWLOCK_KEPT;
		seen = platform_compare_exchange_ordered(&lock->waits, value, here);
		if (seen == value)
			return 1;
	}
}

/* The caller no longer counts. The last writer lets the readers go that kept off for it. */
static inline void adaptive_rwlock_leave(struct adaptive_rwlock_lock *lock, const struct adaptive_rwlock_entry *entry)
{
	unspin_u32 one = entry->reads ? ADAPTIVE_RWLOCK_ONE_READER : ADAPTIVE_RWLOCK_ONE_WRITER;
	unspin_u32 value = platform_load_relaxed(&lock->waits), seen, left;

	for (;; value = seen) {
		left = value - one;
		if (!(left & ADAPTIVE_RWLOCK_READERS))
			left &= ~ADAPTIVE_RWLOCK_KEPT;
		seen = platform_compare_exchange_ordered(&lock->waits, value, left);
		if (seen == value)
			break;
	}
	if (entry->reads || !(left & ADAPTIVE_RWLOCK_KEPT) || (left & ADAPTIVE_RWLOCK_WRITERS))
		return;
	platform_fetch_add_ordered(&lock->kept, 1);
	platform_unblock_all(&lock->kept);
}

/*
 * What a waiter reads before it looks at the lock: a writer `waits`, without WOKEN, which it clears, since it is awake; a
 * reader `kept`.
 */
static inline unspin_u32 adaptive_rwlock_look(struct adaptive_rwlock_lock *lock,
					      const struct adaptive_rwlock_entry *entry)
{
	unspin_u32 waits;

	if (entry->reads)
		return platform_load_acquire(&lock->kept);
	waits = platform_load_acquire(&lock->waits);
	if (waits & ADAPTIVE_RWLOCK_WOKEN)
		waits = platform_fetch_and_ordered(&lock->waits, ~ADAPTIVE_RWLOCK_WOKEN) & ~ADAPTIVE_RWLOCK_WOKEN;
	return waits;
}

/* Sleeps until there may be something new since adaptive_rwlock_look(). Returns 0 if the deadline has passed. */
static inline _Bool adaptive_rwlock_block(struct adaptive_rwlock_lock *lock, const struct adaptive_rwlock_entry *entry,
					  unspin_u32 looked)
{
	unspin_u32 state;

	if (!entry->reads)
		return platform_block(&lock->waits, looked, entry->deadline);
	if (entry->keeps_off && adaptive_rwlock_writer_waits(lock))
		return platform_block(&lock->kept, looked, entry->deadline);
	state = platform_load_relaxed(&lock->state);
	return !(state & ADAPTIVE_RWLOCK_WRITER) || platform_block(&lock->state, state, entry->deadline);
}

/* Waits until the caller is inside (returns 1), or until the deadline has passed (0). */
ADAPTIVE_RWLOCK_SLOW _Bool adaptive_rwlock_wait(struct adaptive_rwlock_lock *lock,
						const struct adaptive_rwlock_entry *entry)
{
	_Bool in_time = 1, is_in;

	if (adaptive_rwlock_spin(lock, entry))
		return 1;
	while (!adaptive_rwlock_join(lock, entry))
		platform_help();
	for (;;) {
		unspin_u32 looked = adaptive_rwlock_look(lock, entry);

		is_in = adaptive_rwlock_enters(lock, entry);
		if (is_in || !in_time)
			break;
		in_time = adaptive_rwlock_block(lock, entry, looked);
	}
	adaptive_rwlock_leave(lock, entry);
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

/* What freeing the lock makes of `waits`: if writers sleep and none is awake, one will be. */
static inline unspin_u32 adaptive_rwlock_told(unspin_u32 waits)
{
	/* Most are 0: then the generation need not be read. */
	if (__builtin_expect(!(waits & ADAPTIVE_RWLOCK_WRITERS), 1))
		return waits;
	return adaptive_rwlock_here(waits) & ADAPTIVE_RWLOCK_WRITERS ? waits | ADAPTIVE_RWLOCK_WOKEN : waits;
}

/* After the lock was freed; `waits`: before that. Accesses nothing. */
ADAPTIVE_RWLOCK_SLOW void adaptive_rwlock_wake(struct adaptive_rwlock_lock *lock, unspin_u32 waits, _Bool wrote)
{
	if (wrote && (adaptive_rwlock_here(waits) & ADAPTIVE_RWLOCK_READERS))
		platform_unblock_all(&lock->state);
	if (adaptive_rwlock_told(waits) != waits)
		platform_unblock(&lock->waits);
}

/* For a writer. Does nothing to a lock in which no writer is. */
static inline void adaptive_rwlock_unlock(struct adaptive_rwlock_lock *lock)
{
	struct platform_values value, freed = {0};

	do {
		value.first = platform_load_relaxed(&lock->state);
		if (!(value.first & ADAPTIVE_RWLOCK_WRITER))
			return;
		value.second = platform_load_relaxed(&lock->waits);
		freed.second = adaptive_rwlock_told(value.second);
	} while (!platform_compare_exchange_two_ordered(&lock->state, value, freed));
	if (__builtin_expect(value.second != 0, 0))
		adaptive_rwlock_wake(lock, value.second, 1);
}

/* For a reader. */
static inline void adaptive_rwlock_read_unlock(struct adaptive_rwlock_lock *lock)
{
	struct platform_values value, left;

	do {
		value.first = platform_load_relaxed(&lock->state);
		value.second = platform_load_relaxed(&lock->waits);
		left.first = value.first - 1;
		left.second = left.first ? value.second : adaptive_rwlock_told(value.second);
	} while (!platform_compare_exchange_two_ordered(&lock->state, value, left));
	if (__builtin_expect(left.second != value.second, 0))
		adaptive_rwlock_wake(lock, value.second, 0);
}

#endif
