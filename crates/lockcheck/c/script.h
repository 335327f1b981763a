/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * script.h - a world of at most eight threads around one lock, moved by hand: the script's side of platform_script.h.
 *
 * Threads are coroutines of the calling thread; a world may only be used by the thread that made it. Each runs a
 * program: a string of letters, one after the other:
 *   L  lock, enter, leave, unlock          R  read_lock, enter, leave, read_unlock
 *   T  trylock; when it succeeds as L, else SCRIPT_TRY_REFUSED
 *                                          P  the same by read_trylock
 *   Q  is_locked                           U  unlock, whoever holds the lock or nobody
 * around SCRIPT_RCU (locks/parts/rcu.h):
 *   R  a reader: read_lock, follow the pointer, read what it points to, read_unlock
 *   S  an updater: publish a new version, synchronize, spoil the old one
 *
 * With SCRIPT_STORE_BUFFERS a plain store waits in its thread's buffer, first in first out, until the script flushes it; the
 * thread's own loads see it there. Everything else but loads and waits goes on with an empty buffer only: x86's TSO
 * (Sewell and others, "x86-TSO", CACM 2010). Parking and asking the host are those of the contract, the script being the host.
 */
#ifndef UNSPIN_BENCH_SCRIPT_H
#define UNSPIN_BENCH_SCRIPT_H

#include "../../../abi/guest/lock_kinds.h"
#include "../../../locks/platform/contract.h"

#define SCRIPT_THREADS_MAX 8u
#define SCRIPT_BUFFER_MAX 16u
/* The kind of a world around locks/parts/rcu.h, which is no lock. */
#define SCRIPT_RCU 1000u

/* Flags of script_new. */
#define SCRIPT_STORE_BUFFERS 1u
/* The program looks at and changes a plain word inside, and says SCRIPT_ASK before it asks. */
#define SCRIPT_LOOKS 2u

/* What the host answers, whatever is asked (is_preempted, is_overloaded, runnable_tasks). */
enum script_run_states {
	SCRIPT_RUN_STATES_NEVER = 0,
	SCRIPT_RUN_STATES_ALWAYS = 1,
	SCRIPT_RUN_STATES_ANY = 2, /* either, by the script's choice, at each call */
};

/* What the script can do with a thread: a set of these. */
#define SCRIPT_CAN_STEP 1u
#define SCRIPT_CAN_FLUSH 2u    /* the oldest store of its buffer reaches memory */
#define SCRIPT_CAN_TIME_OUT 4u /* its wait is bounded, the word has not changed: spends all spins at once */
#define SCRIPT_CAN_WAKE 8u     /* it is parked: comes back without cause */
#define SCRIPT_CAN_ANSWER 16u  /* it asks the host: step answers no, SCRIPT_YES yes */
#define SCRIPT_IS_LOCAL 32u    /* its step touches nothing that another thread can see, now or later */
#define SCRIPT_YES 64u	       /* of script_act only */

/* Answers of script_finish. */
#define SCRIPT_STILL_LOCKED 1u
#define SCRIPT_STILL_REFUSED 2u
#define SCRIPT_STILL_STUCK 4u

struct script_world;

/* One table for each build of the locks: as they are, with room for two waiters, with a bug planted. */
struct script_calls {
	/* Returns 0 when out of memory, or when `kind` (lock_kinds.h, SCRIPT_RCU) or `threads` (1..8) is out of range. */
	struct script_world *(*create)(unspin_u32 kind, unspin_u32 threads, unspin_u32 flags, unspin_u32 run_states);
	void (*destroy)(struct script_world *world);

	/* Back to the beginning: the lock as init() leaves it, no program begun. Programs of earlier starts are forgotten. */
	void (*reset)(struct script_world *world);

	/* Runs each thread up to its first request. `programs`: one string per thread, to outlive the world's use. */
	void (*start)(struct script_world *world, const char *const *programs);

	/* The lock's bytes, for reading its state and for setting it between reset and start. */
	void *(*lock_memory)(struct script_world *world, unspin_u32 *bytes);

	/* What `thread` wants to do next; valid until its next step. */
	const struct script_request *(*pending)(const struct script_world *world, unspin_u32 thread);

	/* What can be done with `thread` now. */
	unspin_u32 (*choices)(const struct script_world *world, unspin_u32 thread);

	/*
	 * Does one of that. A step lets `thread` do what it wants to, and run up to its next request. The step of a wait is
	 * one look at the word, also where it has not changed: then a spin is spent, and it goes on when it was the last.
	 */
	void (*act)(struct script_world *world, unspin_u32 thread, unspin_u32 action);

	/*
	 * All that decides the future of this world, at most `capacity` bytes into `buffer`: memory, stores that wait, requests,
	 * registers and live stacks. Returns the bytes there are; equal bytes mean equal futures.
	 */
	unspin_u64 (*save)(const struct script_world *world, void *buffer, unspin_u64 capacity);
	/* Back to what was saved from this world since its last start. */
	void (*restore)(struct script_world *world, const void *buffer);

	/* All have ended: asks is_locked, then trylock, each without any waiting. Returns 0 or what is wrong. Changes the lock. */
	unspin_u32 (*finish)(struct script_world *world);

	unspin_u32 waiters_max; /* PLATFORM_WAITERS_MAX of this build */
	unspin_u32 reserved;
};

#endif
