/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * contract.h - the waiting contract: every operation that a lock may use of the world it runs in.
 *
 * A lock header includes this file and the headers of locks/, nothing else. Each world defines the functions below as
 * static inline: platform/threads.h (threads of a process), lib/process.h (threads of any program),
 * guest/platform_guest.h (the micro guest), crates/lab/c/platform_lab.h and crates/lockcheck/c/platform_script.h. A world is chosen by defining
 * UNSPIN_PLATFORM_HEADER before a lock is included.
 *
 * A lock has no loop of its own around PAUSE: it waits by platform_wait_while(). Every shared access is one of the
 * calls below, with its memory order in its name, so that the checker can make it a scheduling point and the lab can
 * give it a cost. Any context of the world, with or without locks held. None fails or allocates.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_H
#define UNSPIN_LOCKS_PLATFORM_H

#include "../../abi/types.h"

/*
 * Waiters and tasks. A waiter is what spins or halts: a vCPU of the micro guest, or a thread. A task is what sleeps: a
 * guest's task, or a thread. Both are numbered from 0, uniquely among those that share a lock; in a world without tasks
 * of its own the two are the same. A lock has places for PLATFORM_WAITERS_MAX waiters or tasks (1 to 64; each world
 * defines it); one with a number of that or more gets the lock too, by spinning without a place of its own in the
 * queue.
 */

/* A word that several waiters share. Locks access `value` by platform calls only. */
struct platform_word {
	unspin_u32 value;
};

/* Plain initialisation, before the word is shared. */
static inline void platform_init(struct platform_word *word, unspin_u32 value);

static inline unspin_u32 platform_load_relaxed(const struct platform_word *word);
static inline unspin_u32 platform_load_acquire(const struct platform_word *word);
static inline void platform_store_relaxed(struct platform_word *word, unspin_u32 value);
static inline void platform_store_release(struct platform_word *word, unspin_u32 value);

/* Each returns the word's previous value. */
static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value);
static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend);
static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend);
/*
 * Returns the previous value, which is `expected` if it succeeded. Acquire on success, relaxed on failure. Never fails
 * spuriously.
 */
static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired);

/*
 * Sequentially consistent: no access of the program moves across in either direction. On x86 each empties the store
 * buffer. fetch_or and fetch_and are for flags and for sets of waiters, one bit each.
 */
static inline unspin_u32 platform_exchange_ordered(struct platform_word *word, unspin_u32 value);
static inline unspin_u32 platform_fetch_add_ordered(struct platform_word *word, unspin_u32 addend);
static inline unspin_u32 platform_fetch_or_ordered(struct platform_word *word, unspin_u32 bits);
static inline unspin_u32 platform_fetch_and_ordered(struct platform_word *word, unspin_u32 bits);
static inline unspin_u32 platform_compare_exchange_ordered(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired);
/*
 * The same for two words at once, of which `words` is the first, aligned to 8 bytes; the other follows it. Returns whether it
 * succeeded. It changes neither word otherwise.
 */
struct platform_values {
	unspin_u32 first, second;
};
static inline _Bool platform_compare_exchange_two_ordered(struct platform_word *words, struct platform_values expected,
							  struct platform_values desired);
/* A full barrier: all earlier stores are visible to all before any later load is made. */
static inline void platform_fence(void);

/* The number of the calling waiter, or task. Constant while it waits for a lock or holds one. */
static inline unspin_u32 platform_waiter(void);
static inline unspin_u32 platform_task(void);

/*
 * Waits while the word holds `value`, for at most `spins` spins of the loop (PLATFORM_FOREVER: no bound). Returns the
 * value seen last, by an acquire load: `value` means that the word did not change in `spins` spins. One spin is one
 * read of the word and, at every k-th spin (k is the world's choice), one PAUSE after a read that saw no change. A spin
 * is counted before its read, so each call counts at least one; with 0 spins nothing is read and `value` is returned.
 * The count to k continues from call to call, since a lock may call for one spin at a time.
 */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins);
#define PLATFORM_FOREVER 0xffffffffu

/*
 * Waits without bound until the word holds `value`, seen by an acquire load. Equivalent to the loop below, which most
 * worlds use; the lab has its own, which does not wake a waiter at each other value.
 */
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value);

/*
 * The same for at most `spins` spins in all (PLATFORM_FOREVER: no bound). Returns whether the word holds `value`; with
 * 0 spins it reads once.
 */
static inline _Bool platform_wait_until_for(const struct platform_word *word, unspin_u32 value, unspin_u32 spins);

/*
 * Parking. platform_park() gives up the CPU until this waiter is kicked. It returns at once if the word does not hold
 * `value` or if the waiter has been kicked since its last park returned. It may also return without cause: the caller
 * reads the word again. A kick is never lost: one that comes before the park ends the park. A change of the word alone
 * does not end a park, so whoever changes the word must kick. In a world without parking it returns at once, and kicks
 * do nothing.
 */
static inline void platform_park(const struct platform_word *word, unspin_u32 value);
static inline void platform_kick(unspin_u32 waiter);

/* The same for a task, which leaves its vCPU to other tasks of the guest. The caller must hold no spinning lock. */
static inline void platform_sleep(const struct platform_word *word, unspin_u32 value);
static inline void platform_wake(unspin_u32 task);

/*
 * platform_help() asks the host to run another vCPU in an unusually long wait (Friebel 2008, ruling 2; threads:
 * sched_yield(2)). platform_help_named() asks it to run `waiter` in place of the caller (KVM_HC_SCHED_YIELD; in worlds
 * where none can be named, the same as platform_help()). Either may do nothing.
 */
static inline void platform_help(void);
static inline void platform_help_named(unspin_u32 waiter);

/*
 * What the host publishes: whether `waiter` (any number) is descheduled (eCS's vcpu_preempted), and whether another
 * task could run on this pCPU now (pcpu_overloaded, ruling 24). 0 if the host publishes nothing. Any answer may be
 * wrong at any time: a lock must exclude and make progress whatever the answers are.
 */
static inline _Bool platform_is_preempted(unspin_u32 waiter);
static inline _Bool platform_is_overloaded(void);
/*
 * How many spins a waiter spins before it halts or asks for help: the host's `spin_count` (abi/guest/pv_page.h), or
 * `own` (1 or more) if the host sets none. It may change between calls; a lock reads it again for each wait and must be
 * correct with any value.
 */
static inline unspin_u32 platform_spin_count(unspin_u32 own);
/* Number of runnable tasks on this vCPU, the caller included: 1 or more. */
static inline unspin_u32 platform_runnable_tasks(void);
/* Whether a task is on a vCPU, and that vCPU on a pCPU. May be wrong, as above. */
static inline _Bool platform_task_runs(unspin_u32 task);

/*
 * Waiting by address. platform_block() gives up the CPU while the word holds `value`, until platform_unblock() of that
 * word ends one such wait (which, the world chooses) or platform_unblock_all() ends all. The test of the word and the beginning of the wait are one step, so
 * whoever changes the word first and unblocks then loses no waiter. It may return without cause. It returns 0 if
 * `deadline` has passed, which each world understands in its own way, and 1 otherwise; 0: no deadline.
 */
static inline _Bool platform_block(const struct platform_word *word, unspin_u32 value, const void *deadline);
static inline void platform_unblock(const struct platform_word *word);
/* Ends all waits of that word. */
static inline void platform_unblock_all(const struct platform_word *word);

/* Lets the time of so many spins pass, without reading anything. */
static inline void platform_pause(unspin_u32 spins);
/* The same for PLATFORM_NAP_NS or somewhat more; where there are threads, without a CPU. It may return at once. */
#define PLATFORM_NAP_NS 50000
static inline void platform_nap(void);

/*
 * How often the memory that the lock is in has been copied to a new process by fork, on the way from the first one: waiters
 * that a copied lock knows of are in another process.
 */
static inline unspin_u32 platform_generation(void);

/*
 * What a holder leaves in a lock, so that waiters can ask whether it runs: below PLATFORM_MARKS. By default its number as a
 * task; where threads have none, its CPU. The answer may be wrong at any time, as those above.
 */
#define PLATFORM_MARKS 0x7fffu
static inline unspin_u32 platform_mark(void);
static inline _Bool platform_mark_runs(unspin_u32 mark);

#ifndef UNSPIN_PLATFORM_HEADER
#error "define UNSPIN_PLATFORM_HEADER: which world these locks run in"
#endif
#include UNSPIN_PLATFORM_HEADER

#ifndef PLATFORM_HAS_TASK_RUNS
/* For worlds in which waiters and tasks are the same. */
static inline _Bool platform_task_runs(unspin_u32 task)
{
	return !platform_is_preempted(task);
}
#endif

#ifndef PLATFORM_HAS_GENERATION
/* For worlds whose memory is never copied with the locks in it. */
static inline unspin_u32 platform_generation(void)
{
	return 0;
}
#endif

#ifndef PLATFORM_HAS_MARKS
static inline unspin_u32 platform_mark(void)
{
	return platform_task() % PLATFORM_MARKS;
}

static inline _Bool platform_mark_runs(unspin_u32 mark)
{
	return platform_task_runs(mark);
}
#endif

#ifndef PLATFORM_HAS_BLOCK
/* For worlds that do not wait by address: spins for a while (claim O05: a stall), then lets others run. */
#define PLATFORM_BLOCK_SPINS 2048u
static inline _Bool platform_block(const struct platform_word *word, unspin_u32 value, const void *deadline)
{
	(void)deadline;
	if (platform_wait_while(word, value, PLATFORM_BLOCK_SPINS) == value)
		platform_help();
	return 1;
}

static inline void platform_unblock(const struct platform_word *word)
{
	(void)word;
}

static inline void platform_unblock_all(const struct platform_word *word)
{
	(void)word;
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
