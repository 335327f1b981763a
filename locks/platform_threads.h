/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * platform_threads.h - the waiting contract (platform.h) between the threads of one process.
 *
 * Spinning is plain: no sched_yield, no futex. What a descheduled holder or waiter costs is the thing to be seen.
 * Shared accesses are the compiler's __atomic builtins with the order that the call names, so ThreadSanitizer knows
 * them. A thread sets its platform_thread up with platform_thread_start() before it takes a lock, and calls
 * platform_thread_begin_wait() before each acquisition that is to be counted; both only touch its own state.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_THREADS_H
#define UNSPIN_LOCKS_PLATFORM_THREADS_H

#include "platform_atomics.h"

#define PLATFORM_WAITERS_MAX 64u
/* A waiter's node has a cache line of its own. */
#define PLATFORM_NODE_ALIGNMENT 64

/* Values of platform_thread.holder_at_stall that are not a holder word's value. */
#define PLATFORM_NOT_STALLED 0xffffffffu

/* What the waiting loop keeps for one thread; nobody else reads it while the thread runs. */
struct platform_thread {
	unspin_u64 turns;		    /* looks at a word, in all waits since the start */
	unspin_u64 pauses;		    /* PAUSE instructions among them */
	unspin_u64 wait_turns;		    /* turns since platform_thread_begin_wait() */
	unspin_u64 stall_turns;		    /* a wait of more turns is a stall (VEE'13 section 3, ruling 10) */
	const struct platform_word *holder; /* read once, at the moment of the stall; 0: not asked for */
	unspin_u32 holder_at_stall;	    /* that word's value, or PLATFORM_NOT_STALLED */
	unspin_u32 pause_every_turns;	    /* 1 or more: PAUSE at every k-th turn */
	unspin_u32 turns_to_pause;
	unspin_u32 number; /* among the threads that share locks; set by platform_thread_number() */
};

/* Defined once by the program (crates/bench/c/drivers.c). */
extern _Thread_local struct platform_thread platform_self;

/* Clears the calling thread's counters. `pause_every_turns` is 1 or more. */
static inline void platform_thread_start(unspin_u32 pause_every_turns, unspin_u64 stall_turns)
{
	platform_self = (struct platform_thread){
		.number = platform_self.number,
		.stall_turns = stall_turns,
		.holder_at_stall = PLATFORM_NOT_STALLED,
		.pause_every_turns = pause_every_turns,
		.turns_to_pause = pause_every_turns,
	};
}

/* Gives the calling thread its number, before it takes a lock: no two threads that share one may have the same. */
static inline void platform_thread_number(unspin_u32 number)
{
	platform_self.number = number;
}

static inline unspin_u32 platform_waiter(void)
{
	return platform_self.number;
}

static inline unspin_u32 platform_task(void)
{
	return platform_self.number;
}

/* An acquisition begins: its turns count from 0, and a stall looks at `holder` (0: at nothing). */
static inline void platform_thread_begin_wait(const struct platform_word *holder)
{
	platform_self.wait_turns = 0;
	platform_self.holder = holder;
	platform_self.holder_at_stall = PLATFORM_NOT_STALLED;
}

/* Tells the core that this is a waiting loop; elsewhere than on x86 and arm64 only the compiler hears it. */
static inline void platform_thread_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* The acquisition has waited for more than stall_turns: who holds the lock now? Relaxed: the answer is a sample. */
static inline void platform_thread_stalled(struct platform_thread *self)
{
	self->holder_at_stall = self->holder ? platform_load_relaxed(self->holder) : PLATFORM_NOT_STALLED;
}

/* Each look is an acquire load: with some locks, seeing the change is the acquisition. */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 turns)
{
	struct platform_thread *self = &platform_self;
	unspin_u32 seen = value;

	while (turns) {
		if (turns != PLATFORM_FOREVER)
			turns--;
		self->turns++;
		if (++self->wait_turns == self->stall_turns + 1)
			platform_thread_stalled(self);
		seen = platform_load_acquire(word);
		if (seen != value)
			break;
		if (--self->turns_to_pause == 0) {
			self->turns_to_pause = self->pause_every_turns;
			self->pauses++;
			platform_thread_pause();
		}
	}
	return seen;
}

/* A thread does not park yet: it goes on spinning, which the contract allows. */
static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	(void)word;
	(void)value;
}

static inline void platform_kick(unspin_u32 waiter)
{
	(void)waiter;
}

static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	platform_park(word, value);
}

static inline void platform_wake(unspin_u32 task)
{
	platform_kick(task);
}

static inline void platform_help(void)
{
}

static inline void platform_help_named(unspin_u32 waiter)
{
	(void)waiter;
}

static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	(void)waiter;
	return 0;
}

static inline _Bool platform_is_overloaded(void)
{
	return 0;
}

static inline unspin_u32 platform_runnable_tasks(void)
{
	return 1;
}

#endif
