/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * adaptive_mutex.h - ours: 8 bytes. One waiter spins while the holder runs, the others sleep; all sleep while it does not.
 *
 * The holder leaves in the lock by what it can be found (platform_mark()). A waiter that sees that the holder does not run
 * notes it there (DESCHEDULED), and whoever looks sleeps at once, which leaves the holder a CPU. Otherwise one waiter at a
 * time spins for long; so long as one does, unlock wakes nobody. Each poll takes the lock's cache line from the holder, so
 * a waiter marks what it has seen (SEEN), which the next unlock clears: a hold that goes on is polled often, a lock that
 * is freed and taken between two polls ever less often, at last after naps, and the next waiter begins as the last one has
 * ended. So a thread takes a hot lock many times in a row while it is in its cache, and the waiter leaves it the core.
 *
 * Fairness: who comes first passes, until the waiter that spins has spun ADAPTIVE_MUTEX_KEEP_SPINS. Then it keeps
 * newcomers off (RESERVED), gets the lock at the next unlock, and its unlock wakes one that sleeps. So a sleeper's turn
 * comes after as many turns as sleepers were woken before it; the world chooses who is woken.
 *
 * Why no wake-up is lost: a sleeper counts itself in `waiters` (a full barrier), reads `holder`, and blocks while `waiters`
 * is what it was and has no WOKEN. An unlock frees `holder` and reads `waiters` in one instruction: either it sees the
 * sleeper, or the sleeper sees that the lock is free. While SPINNER or WOKEN is set somebody is awake: who has set SPINNER,
 * or a sleeper, clears it when it has the lock, and its unlock wakes; or clears it before it sleeps, and reads `holder`
 * after that.
 *
 * That instruction sets WOKEN, too, and is the last access of an unlock: who has the lock next may give its memory back, as
 * POSIX allows (pthread_mutex_destroy). The wake-up that follows names an address, at which something else may be by then;
 * the kernel does not read it, and whoever waits there returns without cause.
 *
 * Limits: 32,767 sleepers; others ask for help. The caller must hold no spinning lock. In a world that does not wait by
 * address (platform_block()) waiters spin and ask for help instead of sleeping.
 */
#ifndef UNSPIN_LOCKS_ADAPTIVE_MUTEX_H
#define UNSPIN_LOCKS_ADAPTIVE_MUTEX_H

#include "../platform/contract.h"

/* The holder word: 0, free; HELD, the holder's mark and flags; RESERVED alone: free, but not for newcomers. */
#define ADAPTIVE_MUTEX_MARK 0x7fffu
#define ADAPTIVE_MUTEX_HELD 0x8000u
#define ADAPTIVE_MUTEX_DESCHEDULED 0x10000u
#define ADAPTIVE_MUTEX_RESERVED 0x20000u
/* So often waiters have polled during this hold. */
#define ADAPTIVE_MUTEX_SEEN_SHIFT 18
#define ADAPTIVE_MUTEX_SEEN 0xfffc0000u
#ifndef ADAPTIVE_MUTEX_SEEN_MAX
#define ADAPTIVE_MUTEX_SEEN_MAX 0x3fffu
#endif

/*
 * The waiters word: two flags, the number of sleepers, how often the waiter that spun has got the lock since a sleeper was
 * woken, the process by its generation (platform_generation()), and two hints of waiters for the next one: how little it is
 * worth to spin, and with which pause to begin (a power of 2). In a forked process the word of another generation is that of
 * threads which are not there.
 */
#define ADAPTIVE_MUTEX_SPINNER 1u /* a waiter spins that is no sleeper */
#define ADAPTIVE_MUTEX_WOKEN 2u	  /* a sleeper is awake, or will be */
#define ADAPTIVE_MUTEX_AWAKE (ADAPTIVE_MUTEX_SPINNER | ADAPTIVE_MUTEX_WOKEN)
#define ADAPTIVE_MUTEX_SLEEPER 4u
#define ADAPTIVE_MUTEX_SLEEPERS 0x1fffcu
#define ADAPTIVE_MUTEX_TURN 0x20000u
#define ADAPTIVE_MUTEX_TURNS 0x1e0000u
#define ADAPTIVE_MUTEX_GENERATION_SHIFT 21
#define ADAPTIVE_MUTEX_GENERATION 0x1e00000u
#define ADAPTIVE_MUTEX_HASTE_SHIFT 25
#define ADAPTIVE_MUTEX_HASTE 0xe000000u
#define ADAPTIVE_MUTEX_PAUSE_SHIFT 28

/*
 * Our choices, in spins of a PAUSE each (24 ns where they were chosen). BRIEF: of every waiter, about the cost of a sleep
 * and a wake-up (E12). KEEP: turns are so long that a wake-up and a sleep at each cost 3 %, and so short that each of 64
 * sleepers has its turn in 10 ms. LONG: who has spun that long sleeps, or half as long for each degree of haste.
 */
#ifndef ADAPTIVE_MUTEX_KEEP_SPINS
#define ADAPTIVE_MUTEX_TURNS_MAX 15u
#define ADAPTIVE_MUTEX_VAIN_WAKES 4u
#define ADAPTIVE_MUTEX_BRIEF_SPINS 128u
#define ADAPTIVE_MUTEX_KEEP_SPINS 4096u
#define ADAPTIVE_MUTEX_LONG_SPINS 8192u
#define ADAPTIVE_MUTEX_NAP_SPINS 2048u
#define ADAPTIVE_MUTEX_HASTE_MAX 7u
#define ADAPTIVE_MUTEX_HASTE_TRIES 3u
#endif
/* The longest pause between two polls is 2 to this, and that while the same hold goes on. */
#ifndef ADAPTIVE_MUTEX_PAUSE_MAX
#define ADAPTIVE_MUTEX_PAUSE_MAX 9u
#define ADAPTIVE_MUTEX_PAUSE_HELD 2u
#endif
/* By so much a pause grows in which the lock was freed and taken: with 2, a tenth of all operations moved the lock. */
#define ADAPTIVE_MUTEX_PAUSE_RAISE 4u
/* By so much haste grows when a waiter has spun in vain for one hold; it falls by 1 when one has got the lock. */
#define ADAPTIVE_MUTEX_HASTE_RAISE 2u

/* Apart from the functions that callers call, which save no registers then. */
#define ADAPTIVE_MUTEX_SLOW static __attribute__((noinline, unused))

/* Aligned, since an unlock accesses both words at once. */
struct adaptive_mutex_lock {
	struct platform_word holder;
	struct platform_word waiters;
} __attribute__((aligned(8)));

/* Initialises the lock, before it is shared. */
static inline void adaptive_mutex_init(struct adaptive_mutex_lock *lock)
{
	platform_init(&lock->holder, 0);
	platform_init(&lock->waiters, 0);
}

/* Takes the lock if its holder word is `free`. Returns whether the caller holds it now. */
static inline _Bool adaptive_mutex_take(struct adaptive_mutex_lock *lock, unspin_u32 free)
{
	return platform_compare_exchange_acquire(&lock->holder, free, ADAPTIVE_MUTEX_HELD | platform_mark()) == free;
}

static inline unspin_u32 adaptive_mutex_generation(void)
{
	return platform_generation() << ADAPTIVE_MUTEX_GENERATION_SHIFT & ADAPTIVE_MUTEX_GENERATION;
}

/* Whether `waiters` is of a process from which this one was forked, possibly by way of others. */
static inline _Bool adaptive_mutex_is_inherited(unspin_u32 waiters)
{
	return (waiters & ADAPTIVE_MUTEX_GENERATION) != adaptive_mutex_generation();
}

/* Returns whether the lock was taken. May take it while others wait, but not if it is kept for one of them. */
static inline _Bool adaptive_mutex_trylock(struct adaptive_mutex_lock *lock)
{
	return adaptive_mutex_take(lock, 0) || (platform_load_relaxed(&lock->holder) == ADAPTIVE_MUTEX_RESERVED &&
						adaptive_mutex_is_inherited(platform_load_relaxed(&lock->waiters)) &&
						adaptive_mutex_take(lock, ADAPTIVE_MUTEX_RESERVED));
}

/* Whether the lock is held, or kept for a waiter. May be out of date when it returns, and implies no memory order. */
static inline _Bool adaptive_mutex_is_locked(const struct adaptive_mutex_lock *lock)
{
	return platform_load_relaxed(&lock->holder) != 0;
}

/* How a waiter polls. */
struct adaptive_mutex_poll {
	unspin_u32 spins; /* of its pauses so far */
	unspin_u32 pause; /* the next one is 2 to this */
	unspin_u32 haste;
	unspin_u32 seen; /* what it has left in the holder word, of multiples of SEEN; 0: nothing yet */
	_Bool passed;	 /* the lock was freed and taken meanwhile: holders run */
};

/* A waiter begins where the last one has ended. */
static inline struct adaptive_mutex_poll adaptive_mutex_poll_begin(const struct adaptive_mutex_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->waiters);

	return (struct adaptive_mutex_poll){
		.pause = value >> ADAPTIVE_MUTEX_PAUSE_SHIFT,
		.haste = (value & ADAPTIVE_MUTEX_HASTE) >> ADAPTIVE_MUTEX_HASTE_SHIFT,
	};
}

/*
 * Publishes the hints for the next waiter, after the caller has got the lock, or has spun in vain. Where the word changes
 * meanwhile it stays as it is.
 */
static inline void adaptive_mutex_poll_end(struct adaptive_mutex_lock *lock, struct adaptive_mutex_poll *poll,
					   _Bool taken)
{
	unspin_u32 value = platform_load_relaxed(&lock->waiters), hints;

	if (!taken && !poll->passed)
		poll->haste += ADAPTIVE_MUTEX_HASTE_RAISE;
	else if (poll->spins && poll->haste)
		poll->haste--;
	/* Beyond the greatest haste one tries again, or a lock that is worth spinning would stay with waiters that sleep. */
	if (poll->haste > ADAPTIVE_MUTEX_HASTE_MAX)
		poll->haste = ADAPTIVE_MUTEX_HASTE_TRIES;
	if (taken && poll->spins && poll->pause)
		poll->pause--;
	hints = poll->pause << ADAPTIVE_MUTEX_PAUSE_SHIFT | poll->haste << ADAPTIVE_MUTEX_HASTE_SHIFT;
	if (value >> ADAPTIVE_MUTEX_HASTE_SHIFT != hints >> ADAPTIVE_MUTEX_HASTE_SHIFT)
		platform_compare_exchange_acquire(&lock->waiters, value,
						  (value & ((1u << ADAPTIVE_MUTEX_HASTE_SHIFT) - 1)) | hints);
}

/* The longest pause is a nap: a waiter that spins beside the holder, on the same core, slows it down. */
static inline void adaptive_mutex_pause(struct adaptive_mutex_poll *poll)
{
	if (poll->pause == ADAPTIVE_MUTEX_PAUSE_MAX) {
		platform_nap();
		poll->spins += ADAPTIVE_MUTEX_NAP_SPINS;
	} else {
		platform_pause(1u << poll->pause);
		poll->spins += 1u << poll->pause;
	}
}

/*
 * The lock is held, as `value` says: leaves there that it was seen, with `flags`, and chooses the pause. The exchange may
 * fail: then the next poll sees what has changed.
 */
static inline void adaptive_mutex_poll_held(struct adaptive_mutex_lock *lock, struct adaptive_mutex_poll *poll,
					    unspin_u32 value, unspin_u32 flags)
{
	unspin_u32 seen = value >> ADAPTIVE_MUTEX_SEEN_SHIFT;

	if (poll->seen && seen >= poll->seen) {
		poll->pause += poll->pause < ADAPTIVE_MUTEX_PAUSE_HELD;
		poll->pause -= poll->pause > ADAPTIVE_MUTEX_PAUSE_HELD;
	} else if (poll->seen) {
		poll->passed = 1;
		poll->pause += ADAPTIVE_MUTEX_PAUSE_RAISE;
		if (poll->pause > ADAPTIVE_MUTEX_PAUSE_MAX)
			poll->pause = ADAPTIVE_MUTEX_PAUSE_MAX;
	}
	poll->seen = seen + (seen < ADAPTIVE_MUTEX_SEEN_MAX);
	flags |= (value & ~ADAPTIVE_MUTEX_SEEN) | poll->seen << ADAPTIVE_MUTEX_SEEN_SHIFT;
	if (value != flags)
		platform_compare_exchange_acquire(&lock->holder, value, flags);
}

enum adaptive_mutex_spun { ADAPTIVE_MUTEX_TAKEN, ADAPTIVE_MUTEX_IN_VAIN, ADAPTIVE_MUTEX_HOLDER_STOPPED };

/*
 * Polls while the holder runs, for `spins` spins or less in haste, and keeps newcomers off after `keep_spins`. `newcomer`:
 * the caller does not take a lock that is kept for another.
 */
static inline enum adaptive_mutex_spun adaptive_mutex_spin(struct adaptive_mutex_lock *lock, unspin_u32 spins,
							   unspin_u32 keep_spins, _Bool newcomer)
{
	struct adaptive_mutex_poll poll = adaptive_mutex_poll_begin(lock);

	/* Where the lock is freed and taken all the time it is taken after a pause, or it would go to and fro. */
	if (poll.pause > ADAPTIVE_MUTEX_PAUSE_HELD)
		adaptive_mutex_pause(&poll);
	for (;;) {
		unspin_u32 value = platform_load_relaxed(&lock->holder);

		if (!(value & ADAPTIVE_MUTEX_HELD)) {
			if (newcomer && value)
				return ADAPTIVE_MUTEX_IN_VAIN;
			if (!adaptive_mutex_take(lock, value))
				continue;
			adaptive_mutex_poll_end(lock, &poll, 1);
			return ADAPTIVE_MUTEX_TAKEN;
		}
		if (value & ADAPTIVE_MUTEX_DESCHEDULED)
			return ADAPTIVE_MUTEX_HOLDER_STOPPED;
		if (!platform_mark_runs(value & ADAPTIVE_MUTEX_MARK)) {
			platform_compare_exchange_acquire(&lock->holder, value, value | ADAPTIVE_MUTEX_DESCHEDULED);
			return ADAPTIVE_MUTEX_HOLDER_STOPPED;
		}
		adaptive_mutex_poll_held(lock, &poll, value, poll.spins >= keep_spins ? ADAPTIVE_MUTEX_RESERVED : 0);
		/* Haste is for a hold that goes on. */
		if (poll.spins >= (poll.passed || newcomer ? spins : spins >> poll.haste)) {
			if (!newcomer)
				adaptive_mutex_poll_end(lock, &poll, 0);
			return ADAPTIVE_MUTEX_IN_VAIN;
		}
		adaptive_mutex_pause(&poll);
	}
}

/*
 * The caller no longer counts as a sleeper. `woken`: it has seen WOKEN, and clears it. Otherwise the wake-up is that of
 * another sleeper, if there is one.
 */
static inline void adaptive_mutex_leave_sleepers(struct adaptive_mutex_lock *lock, _Bool woken)
{
	unspin_u32 value = platform_load_relaxed(&lock->waiters), seen, left;

	for (;; value = seen) {
		left = value - ADAPTIVE_MUTEX_SLEEPER;
		if (woken || !(left & ADAPTIVE_MUTEX_SLEEPERS))
			left &= ~ADAPTIVE_MUTEX_WOKEN;
		seen = platform_compare_exchange_ordered(&lock->waiters, value, left);
		if (seen == value)
			return;
	}
}

/* Whether those that spin have had the lock so often that it is a sleeper's turn. */
static inline _Bool adaptive_mutex_is_sleepers_turn(unspin_u32 waiters)
{
	return (waiters & ADAPTIVE_MUTEX_SLEEPERS) &&
	       (waiters & ADAPTIVE_MUTEX_TURNS) >= ADAPTIVE_MUTEX_TURNS_MAX * ADAPTIVE_MUTEX_TURN;
}

/* The caller, which has SPINNER, has the lock or will sleep. */
static inline void adaptive_mutex_leave_spinner(struct adaptive_mutex_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->waiters), seen, turn;

	for (;; value = seen) {
		turn = (value & ADAPTIVE_MUTEX_SLEEPERS) && !adaptive_mutex_is_sleepers_turn(value)
			       ? ADAPTIVE_MUTEX_TURN
			       : 0;
		seen = platform_compare_exchange_ordered(&lock->waiters, value,
							 (value + turn) & ~ADAPTIVE_MUTEX_SPINNER);
		if (seen == value)
			return;
	}
}

/* Whether the caller is the waiter that spins for long; it then calls adaptive_mutex_leave_spinner(). */
static inline _Bool adaptive_mutex_becomes_spinner(struct adaptive_mutex_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->waiters), seen;

	while (!(value & ADAPTIVE_MUTEX_AWAKE) && !adaptive_mutex_is_sleepers_turn(value)) {
		seen = platform_compare_exchange_ordered(&lock->waiters, value, value | ADAPTIVE_MUTEX_SPINNER);
		if (seen == value)
			return 1;
		value = seen;
	}
	return 0;
}

/* What an unlock makes of `waiters`: if somebody sleeps and nobody is awake, a sleeper will be. */
static inline unspin_u32 adaptive_mutex_told(unspin_u32 waiters)
{
	if (!__builtin_expect((waiters & ADAPTIVE_MUTEX_SLEEPERS) && !(waiters & ADAPTIVE_MUTEX_AWAKE), 0) ||
	    adaptive_mutex_is_inherited(waiters))
		return waiters;
	return (waiters & ~ADAPTIVE_MUTEX_TURNS) | ADAPTIVE_MUTEX_WOKEN;
}

/* Counts the caller as a sleeper. Returns 0 if there are too many. */
static inline _Bool adaptive_mutex_join_sleepers(struct adaptive_mutex_lock *lock)
{
	unspin_u32 value = platform_load_relaxed(&lock->waiters), seen;

	for (;; value = seen) {
		if ((value & ADAPTIVE_MUTEX_SLEEPERS) == ADAPTIVE_MUTEX_SLEEPERS)
			return 0;
		seen = platform_compare_exchange_ordered(&lock->waiters, value, value + ADAPTIVE_MUTEX_SLEEPER);
		if (seen == value)
			return 1;
	}
}

/* Sleeps until the caller holds the lock (returns 1), or until `deadline` has passed (0). */
static inline _Bool adaptive_mutex_sleep(struct adaptive_mutex_lock *lock, const void *deadline)
{
	unspin_u32 vain = 0;
	_Bool in_time = 1, woken = 0;

	while (!adaptive_mutex_join_sleepers(lock))
		platform_help();
	for (;;) {
		unspin_u32 waiters = platform_load_relaxed(&lock->waiters);
		unspin_u32 value = platform_load_relaxed(&lock->holder);

		if (!(value & ADAPTIVE_MUTEX_HELD)) {
			if (adaptive_mutex_take(lock, value))
				break;
			continue;
		}
		if (!in_time) {
			/* It has no wake-up that another sleeper needs: whoever sees WOKEN reads `holder` once more. */
			platform_fetch_and_ordered(&lock->holder, ~ADAPTIVE_MUTEX_RESERVED);
			adaptive_mutex_leave_sleepers(lock, 0);
			return 0;
		}
		if (!(waiters & ADAPTIVE_MUTEX_WOKEN)) {
			in_time = platform_block(&lock->waiters, waiters, deadline);
			if (!(platform_load_relaxed(&lock->waiters) & ADAPTIVE_MUTEX_WOKEN))
				continue;
		}
		woken = 1;
		/* Whoever was woken in vain again and again keeps newcomers off, and sleeps: they leave the lock to a sleeper. */
		if (adaptive_mutex_spin(lock, ADAPTIVE_MUTEX_LONG_SPINS,
					++vain < ADAPTIVE_MUTEX_VAIN_WAKES ? ADAPTIVE_MUTEX_KEEP_SPINS : 0,
					0) == ADAPTIVE_MUTEX_TAKEN)
			break;
		platform_fetch_and_ordered(&lock->waiters, ~ADAPTIVE_MUTEX_WOKEN);
		woken = 0;
	}
	adaptive_mutex_leave_sleepers(lock, woken);
	return 1;
}

/*
 * As adaptive_mutex_lock(), until `deadline`, which the world understands (platform_block(); 0: none). Returns whether the
 * caller holds the lock. It may be late by the time that a waiter spins.
 */
ADAPTIVE_MUTEX_SLOW _Bool adaptive_mutex_lock_until(struct adaptive_mutex_lock *lock, const void *deadline)
{
	unspin_u32 waiters = platform_load_relaxed(&lock->waiters);
	enum adaptive_mutex_spun spun;

	if (adaptive_mutex_is_inherited(waiters))
		platform_compare_exchange_ordered(&lock->waiters, waiters, adaptive_mutex_generation());
	spun = adaptive_mutex_spin(lock, ADAPTIVE_MUTEX_BRIEF_SPINS, PLATFORM_FOREVER, 1);
	if (spun == ADAPTIVE_MUTEX_IN_VAIN && adaptive_mutex_becomes_spinner(lock)) {
		spun = adaptive_mutex_spin(lock, ADAPTIVE_MUTEX_LONG_SPINS, ADAPTIVE_MUTEX_KEEP_SPINS, 0);
		adaptive_mutex_leave_spinner(lock);
	}
	return spun == ADAPTIVE_MUTEX_TAKEN || adaptive_mutex_sleep(lock, deadline);
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void adaptive_mutex_lock(struct adaptive_mutex_lock *lock)
{
	if (!adaptive_mutex_take(lock, 0))
		adaptive_mutex_lock_until(lock, 0);
}

/* For the holder. Release: the critical section is visible to the next holder. */
static inline void adaptive_mutex_unlock(struct adaptive_mutex_lock *lock)
{
	struct platform_values value, freed;

	do {
		value.first = platform_load_relaxed(&lock->holder);
		value.second = platform_load_relaxed(&lock->waiters);
		freed.first = value.first & ADAPTIVE_MUTEX_RESERVED;
		freed.second = adaptive_mutex_told(value.second);
	} while (!platform_compare_exchange_two_ordered(&lock->holder, value, freed));
	if (__builtin_expect(freed.second != value.second, 0))
		platform_unblock(&lock->waiters);
}

#endif
