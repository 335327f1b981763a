/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * contract.h - the waiting contract: all that a lock may ask of the world it runs in.
 *
 * A lock header includes this file and nothing else. Each world gives the functions below as static inline:
 * platform/threads.h (threads of a process) and guest/platform_guest.h (the micro guest); it is chosen by defining
 * UNSPIN_PLATFORM_HEADER before a lock is included. A checker and the lab follow the same contract.
 *
 * There is no bare relax loop: waiting is platform_wait_while(). Every shared access is one of the calls below, with
 * its memory order in its name, so that a checker can make it a scheduling point and the lab can give it a cost.
 * All may be called from any context of that world, with or without locks held. None fails or allocates.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_H
#define UNSPIN_LOCKS_PLATFORM_H

#include "../../abi/types.h"

/*
 * Waiters and tasks. A waiter is what spins or halts: a vCPU of the micro guest, a thread. A task is what sleeps: a guest task, a
 * thread. Both have small numbers, 0 and up, no two alike among those that share a lock; where a world has no tasks of its
 * own the two are the same. PLATFORM_WAITERS_MAX (1 to 64; each world defines it) is how many of either a lock can queue: one with a
 * greater number takes part all the same, by spinning without a place in the queue.
 */

/* A word that several vCPUs share. Only platform calls touch `value`. */
struct platform_word {
	unspin_u32 value;
};

/* Plain initialisation, before the word is shared. */
static inline void platform_init(struct platform_word *word, unspin_u32 value);

static inline unspin_u32 platform_load_relaxed(const struct platform_word *word);
static inline unspin_u32 platform_load_acquire(const struct platform_word *word);
static inline void platform_store_relaxed(struct platform_word *word, unspin_u32 value);
static inline void platform_store_release(struct platform_word *word, unspin_u32 value);

/* Each returns the value that was there before. */
static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value);
static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend);
static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend);
/* Acquire when it succeeds (returns `expected`), relaxed when it fails. Never fails spuriously. */
static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired);

/*
 * The same in sequentially consistent order: none of the program's accesses moves across it in either direction. On x86 each
 * empties the store buffer. fetch_or and fetch_and are for sets of waiters, one bit each.
 */
static inline unspin_u32 platform_exchange_ordered(struct platform_word *word, unspin_u32 value);
static inline unspin_u32 platform_fetch_add_ordered(struct platform_word *word, unspin_u32 addend);
static inline unspin_u32 platform_fetch_or_ordered(struct platform_word *word, unspin_u32 bits);
static inline unspin_u32 platform_fetch_and_ordered(struct platform_word *word, unspin_u32 bits);
static inline unspin_u32 platform_compare_exchange_ordered(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired);
/* Earlier stores are seen by all before any later load is made. */
static inline void platform_fence(void);

/* The number of the waiter, or of the task, that calls. It does not change while a lock is waited for or held. */
static inline unspin_u32 platform_waiter(void);
static inline unspin_u32 platform_task(void);

/*
 * Waits while the word holds `value`, for at most `spins` spins of the loop (PLATFORM_FOREVER: no bound), and returns
 * the value seen last: `value` itself means that the spins are spent. An acquire load sees the change. One spin is one
 * read of the word and, at every k-th spin of the world's choice, one PAUSE after a read that saw no change. A spin
 * counts before its read, so a lock that calls this has waited for at least one spin; with 0 spins nothing is read
 * and `value` comes back. The k continues from call to call, since a lock may call for one spin at a time.
 */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins);
#define PLATFORM_FOREVER 0xffffffffu

/*
 * Waits until the word holds `value`, however long. The acquire load that sees it there orders what follows. The same as the
 * loop below, which is what a world without a better way does; the lab need not wake a waiter for each other value.
 */
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value);

/*
 * The same for at most `spins` spins in all, whatever the word holds meanwhile (PLATFORM_FOREVER: no bound). Returns whether it
 * holds `value`; with 0 spins it reads once.
 */
static inline _Bool platform_wait_until_for(const struct platform_word *word, unspin_u32 value, unspin_u32 spins);

/*
 * Parking. platform_park() gives the CPU away until this waiter is kicked; it returns at once when the word does not hold
 * `value` or the waiter has been kicked since its last park returned, and may return at any time without cause: the caller
 * reads again. A kick is never lost: one that comes before the park ends the park. Nothing else ends it for sure, so the one that
 * changes the word kicks. A world that cannot park returns at once, and its kicks do nothing.
 */
static inline void platform_park(const struct platform_word *word, unspin_u32 value);
static inline void platform_kick(unspin_u32 waiter);

/* The same for a task, which leaves its vCPU to others of the guest. Not while spinning locks are held. */
static inline void platform_sleep(const struct platform_word *word, unspin_u32 value);
static inline void platform_wake(unspin_u32 task);

/*
 * Calls the scheduler for help in an unusually long wait (Friebel 2008, ruling 2; threads: sched_yield), or that `waiter` run
 * in place of the caller (KVM_HC_SCHED_YIELD; where none can be named: as the first). It may do nothing.
 */
static inline void platform_help(void);
static inline void platform_help_named(unspin_u32 waiter);

/*
 * What the host publishes; 0 where it publishes nothing. A claim only: any answer may be wrong at any time, and no lock may hang or let
 * two in for that. Whether `waiter` (any number) is descheduled (eCS's vcpu_preempted); whether another task could run on
 * this pCPU now (pcpu_overloaded, ruling 24).
 */
static inline _Bool platform_is_preempted(unspin_u32 waiter);
static inline _Bool platform_is_overloaded(void);
/*
 * How many spins a waiter spins before it halts or asks for help: `spin_count` of the host (abi/guest/pv_page.h), or `own`, 1 or
 * more, where there is none. It may change from one call to the next; a lock reads it anew for each wait, and bounds no correctness
 * by it.
 */
static inline unspin_u32 platform_spin_count(unspin_u32 own);
/* Tasks that could run on this vCPU, the caller included: 1 or more. */
static inline unspin_u32 platform_runnable_tasks(void);
/* Whether a task is on a vCPU, and that on a pCPU. */
static inline _Bool platform_task_runs(unspin_u32 task);

#ifndef UNSPIN_PLATFORM_HEADER
#error "define UNSPIN_PLATFORM_HEADER: which world these locks run in"
#endif
#include UNSPIN_PLATFORM_HEADER

#ifndef PLATFORM_HAS_TASK_RUNS
/* Where waiters and tasks are the same. */
static inline _Bool platform_task_runs(unspin_u32 task)
{
	return !platform_is_preempted(task);
}
#endif

#ifndef PLATFORM_HAS_WAIT_UNTIL
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value)
{
	unspin_u32 seen = platform_load_acquire(word);

	while (seen != value)
		seen = platform_wait_while(word, seen, PLATFORM_FOREVER);
}

static inline _Bool platform_wait_until_for(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	unspin_u32 seen = platform_load_acquire(word);

	if (spins == PLATFORM_FOREVER) {
		platform_wait_until(word, value);
		return 1;
	}
	while (seen != value && spins--)
		seen = platform_wait_while(word, seen, 1);
	return seen == value;
}
#endif

#endif
