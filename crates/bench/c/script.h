/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * script.h - a world of at most eight threads around one lock, moved by hand: the script's side of platform_script.h.
 *
 * Threads are coroutines of the calling thread; a world may only be used by the thread that made it. Each runs a
 * program: a string of letters, one step each:
 *   L  lock, enter, leave, unlock
 *   T  trylock; when it succeeds as L, else SCRIPT_TRY_REFUSED
 *   Q  is_locked
 */
#ifndef UNSPIN_BENCH_SCRIPT_H
#define UNSPIN_BENCH_SCRIPT_H

#include "../../../abi/lock_kinds.h"
#include "../../../locks/platform.h"

#define SCRIPT_THREADS_MAX 8u

struct script_world;

/* Returns 0 when out of memory, or when `kind` (lock_kinds.h) or `threads` (1..8) is out of range. */
struct script_world *script_new(unspin_u32 kind, unspin_u32 threads);
void script_free(struct script_world *world);

/* Back to the beginning: the lock as init() leaves it, no program begun. Programs of earlier starts are forgotten. */
void script_reset(struct script_world *world);

/* Runs each thread up to its first request. `programs`: one string per thread, to outlive the world's use. */
void script_start(struct script_world *world, const char *const *programs);

/* The lock's bytes, for reading its state and for setting it between reset and start. */
void *script_lock_memory(struct script_world *world, unspin_u32 *bytes);

/* What `thread` wants to do next; valid until its next step. */
const struct script_request *script_pending(const struct script_world *world, unspin_u32 thread);

/*
 * Lets `thread` do what it wants to, and run up to its next request. A wait takes one turn: one look at the word; it
 * goes on when the word differs or that was the last turn. A done thread stays done.
 */
void script_step(struct script_world *world, unspin_u32 thread);

/* The pending wait of `thread` is bounded and its word has not changed: spends all its turns at once. */
void script_time_out(struct script_world *world, unspin_u32 thread);

/*
 * All that decides what `thread` does next, apart from the lock's memory: registers, live stack and request, at most
 * `capacity` bytes into `buffer`. Returns the bytes there are; equal bytes mean equal futures.
 */
unspin_u64 script_local_state(const struct script_world *world, unspin_u32 thread, void *buffer, unspin_u64 capacity);

#endif
