/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * script.h - a world of at most eight threads around one lock, whose steps the caller chooses: the script's side of
 * platform_script.h.
 *
 * Threads are coroutines of the calling OS thread; a world may only be used by the OS thread that created it. Each runs
 * a program, a string of letters:
 *   L  lock, enter, leave, unlock          R  read_lock, enter, leave, read_unlock
 *   T  trylock; on success as L, else SCRIPT_TRY_REFUSED
 *                                          P  the same with read_trylock
 *   D  as L with a deadline, which may pass at any moment: then SCRIPT_TRY_REFUSED (adaptive_mutex, adaptive_rwlock)
 *   K  as R, but it keeps off for writers  E  the same with a deadline (adaptive_rwlock)
 *   Q  is_locked                           U  unlock, whether or not the lock is held
 * around SCRIPT_RCU (locks/parts/rcu.h):
 *   R  a reader: read_lock, follow the pointer, read what it points to, read_unlock
 *   S  an updater: publish a new version, synchronize, overwrite the old one
 *
 * With SCRIPT_STORE_BUFFERS a plain store waits in its thread's FIFO buffer until the script flushes it; the thread's
 * own loads see it there. All other requests except loads and waits need an empty buffer: x86's TSO (Sewell and others,
 * "x86-TSO", CACM 2010). Parking and questions to the host follow the contract; the script is the host.
 */
#ifndef UNSPIN_BENCH_SCRIPT_H
#define UNSPIN_BENCH_SCRIPT_H

#include "../../../abi/guest/lock_kinds.h"
#include "../../../locks/platform/contract.h"

#define SCRIPT_THREADS_MAX 8u
#define SCRIPT_BUFFER_MAX 16u
/* The `kind` of a world around locks/parts/rcu.h, which is no lock. */
#define SCRIPT_RCU 1000u

/* Flags of script_new. */
#define SCRIPT_STORE_BUFFERS 1u
/* Inside, the program reads and changes a plain word; it issues SCRIPT_ASK before each acquisition. */
#define SCRIPT_LOOKS 2u

/* The host's answer to every question (is_preempted, is_overloaded, runnable_tasks). */
enum script_run_states {
	SCRIPT_RUN_STATES_NEVER = 0,
	SCRIPT_RUN_STATES_ALWAYS = 1,
	SCRIPT_RUN_STATES_ANY = 2, /* either, by the script's choice, at each call */
};

/* What the script can do with a thread: a set of bits. */
#define SCRIPT_CAN_STEP 1u
#define SCRIPT_CAN_FLUSH 2u    /* the oldest store of its buffer reaches memory */
#define SCRIPT_CAN_TIME_OUT 4u /* its wait, or park, is bounded and the word has not changed: end it */
#define SCRIPT_CAN_WAKE 8u     /* it is parked: return without cause */
#define SCRIPT_CAN_ANSWER 16u  /* it queries the host: a step answers no, SCRIPT_YES answers yes */
#define SCRIPT_IS_LOCAL 32u    /* its step has no effect that another thread can see, now or later */
#define SCRIPT_YES 64u	       /* for script_act only */

/* Results of script_finish. */
#define SCRIPT_STILL_LOCKED 1u
#define SCRIPT_STILL_REFUSED 2u
#define SCRIPT_STILL_STUCK 4u

struct script_world;

/* One table for each build of the locks: unchanged, with places for two waiters, with a seeded bug. */
struct script_calls {
	/* Returns 0 when out of memory, or when `kind` (lock_kinds.h, SCRIPT_RCU) or `threads` (1..8) is out of range. */
	struct script_world *(*create)(unspin_u32 kind, unspin_u32 threads, unspin_u32 flags, unspin_u32 run_states);
	void (*destroy)(struct script_world *world);

	/* Resets the world: the lock as init() leaves it, no program started. */
	void (*reset)(struct script_world *world);

	/*
	 * Runs each thread up to its first request. `programs`: one string for each thread, which must exist until the
	 * next reset.
	 */
	void (*start)(struct script_world *world, const char *const *programs);

	/* The lock's memory, for reading its state, and for setting it between reset and start. */
	void *(*lock_memory)(struct script_world *world, unspin_u32 *bytes);

	/* The next request of `thread`; valid until its next step. */
	const struct script_request *(*pending)(const struct script_world *world, unspin_u32 thread);

	/* What can be done with `thread` now. */
	unspin_u32 (*choices)(const struct script_world *world, unspin_u32 thread);

	/*
	 * Does one of the actions that `choices` returned. A step carries out the request of `thread` and runs it up to
	 * its next request. The step of a wait is one read of the word; if the word has not changed, a spin is counted,
	 * and the wait ends after the last one.
	 */
	void (*act)(struct script_world *world, unspin_u32 thread, unspin_u32 action);

	/*
	 * Copies the state of this world, at most `capacity` bytes, into `buffer`: memory, buffered stores, requests,
	 * registers and live stacks. Returns the state's size in bytes. Worlds with equal bytes behave the same
	 * afterwards.
	 */
	unspin_u64 (*save)(const struct script_world *world, void *buffer, unspin_u64 capacity);
	/* Restores a state that was saved from this world since its last start. */
	void (*restore)(struct script_world *world, const void *buffer);

	/* After all threads have ended: calls is_locked, then trylock. Returns 0 or what is wrong. Changes the lock. */
	unspin_u32 (*finish)(struct script_world *world);

	unspin_u32 waiters_max; /* PLATFORM_WAITERS_MAX of this build */
	unspin_u32 reserved;
};

#endif
