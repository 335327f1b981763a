/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * process.h - the waiting contract (locks/platform/contract.h) for a library: between the threads of any program, which
 * neither register nor number themselves.
 *
 * A thread gets the lowest free number at its first use of a lock that needs one (threads.c), and gives it back when it
 * ends. The first PLATFORM_WAITERS_MAX numbers have a seat each, in which their threads park (locks/platform/table.h).
 * No run states: the library leaves the rseq area to libc, so every running thread is taken to run. Locks that need no
 * number reference nothing outside their own object.
 */
#ifndef UNSPIN_LIB_PROCESS_H
#define UNSPIN_LIB_PROCESS_H

#include <errno.h>
#include <time.h>

#include "../locks/platform/atomics.h"

#define PLATFORM_WAITERS_MAX 64u
/* Each waiter's node has its own cache line, where waiters spin on their nodes. */
#ifndef PLATFORM_NODE_ALIGNMENT
#define PLATFORM_NODE_ALIGNMENT 64
#endif

#include "../locks/platform/table.h"

/* Numbers are below this: a holder word of locks/mutex.h has room for no more. */
#define PROCESS_NUMBERS 65472u

/*
 * In a lock that parks, a wait without bound is one for a place that threads without a seat share, or for a thread that is
 * between two instructions: after so many spins (VEE'13, claim O05: a stall) the waiter lets others run.
 */
#define PROCESS_YIELD_SPINS 2048u

/* The mark of a thread whose CPU is not known. */
#define PROCESS_NO_CPU (PLATFORM_MARKS - 1)

/* The calling thread: its number plus 1 (0: none yet), and how many locks it holds that only their holder can free. */
struct process_thread {
	unspin_u32 number_plus_1;
	unspin_u32 holds;
};

#define PROCESS_HIDDEN __attribute__((visibility("hidden")))

/* In memory that the loader sets aside for each thread: no call to find it. */
extern _Thread_local struct process_thread process_self __attribute__((tls_model("initial-exec"))) PROCESS_HIDDEN;
extern struct platform_seat process_seats[PLATFORM_WAITERS_MAX] PROCESS_HIDDEN;

/* Numbers the calling thread and returns its number. Ends the program when PROCESS_NUMBERS threads have one already. */
PROCESS_HIDDEN unspin_u32 process_number_take(void);
/* Writes `message` to stderr and ends the program: for errors of the caller that would hang it. */
PROCESS_HIDDEN _Noreturn void process_fail(const char *message);

static inline unspin_u32 platform_waiter(void)
{
	unspin_u32 number_plus_1 = process_self.number_plus_1;

	return __builtin_expect(number_plus_1 != 0, 1) ? number_plus_1 - 1 : process_number_take();
}

/* A thread is its own task. */
static inline unspin_u32 platform_task(void)
{
	return platform_waiter();
}

/* A thread cannot yield to another by name. */
static inline void platform_help(void)
{
	syscall(SYS_sched_yield);
}

static inline void platform_help_named(unspin_u32 waiter)
{
	(void)waiter;
	platform_help();
}

static inline void process_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* PAUSE at each spin. */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	unspin_u32 seen = value;
#ifdef PROCESS_PARKS
	unspin_u32 yields_after = spins == PLATFORM_FOREVER ? PROCESS_YIELD_SPINS : 0;
#endif

	while (spins) {
		if (spins != PLATFORM_FOREVER)
			spins--;
		seen = platform_load_acquire(word);
		if (seen != value)
			break;
		process_pause();
#ifdef PROCESS_PARKS
		if (yields_after && --yields_after == 0) {
			yields_after = PROCESS_YIELD_SPINS;
			platform_help();
		}
#endif
	}
	return seen;
}

static inline void platform_pause(unspin_u32 spins)
{
	while (spins--)
		process_pause();
}

/*
 * The CPU of the calling thread, which the kernel keeps in the area that libc has registered (rseq(2)): a holder that took
 * the lock on the caller's CPU does not run while the caller does, unless it has gone elsewhere meanwhile.
 */
#define PLATFORM_HAS_MARKS
static inline unspin_u32 platform_mark(void)
{
	const char *area = (const char *)__builtin_thread_pointer() + __rseq_offset;
	/* Without rseq libc leaves a negative number there: all marks are then PLATFORM_MARKS - 1, see below. */
	unspin_u32 cpu =
		__atomic_load_n((const unspin_u32 *)(const void *)(area + PLATFORM_RSEQ_CPU), __ATOMIC_RELAXED);

	return cpu < PROCESS_NO_CPU ? cpu : PROCESS_NO_CPU;
}

/* For a program that counts how often its threads see that a holder does not run. */
#ifndef PROCESS_SEES_STOPPED
#define PROCESS_SEES_STOPPED()
#endif

static inline _Bool platform_mark_runs(unspin_u32 mark)
{
	if (mark == PROCESS_NO_CPU || mark != platform_mark())
		return 1;
	PROCESS_SEES_STOPPED();
	return 0;
}

/* Of this process; raised in the child of each fork by lib/locks/mutex.c, or lib/preload. */
extern unspin_u32 process_generation PROCESS_HIDDEN;
#define PLATFORM_HAS_GENERATION
static inline unspin_u32 platform_generation(void)
{
	return process_generation;
}

/* When to give up a wait by address. */
struct process_deadline {
	struct timespec time; /* absolute */
	_Bool realtime;	      /* of CLOCK_REALTIME, else of CLOCK_MONOTONIC */
};

/* The kernel adds the thread's timer slack, another 50 us by default (prctl(2), PR_SET_TIMERSLACK). */
static inline void platform_nap(void)
{
	struct timespec time = {0, PLATFORM_NAP_NS};
	int before = errno;

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, 0);
	errno = before;
}

/* For a program that counts how often its threads sleep. */
#ifndef PROCESS_BLOCKS
#define PROCESS_BLOCKS()
#endif

/* A futex of this process; `deadline`: a struct process_deadline. errno stays as it was. */
#define PLATFORM_HAS_BLOCK
static inline _Bool platform_block(const struct platform_word *word, unspin_u32 value, const void *deadline)
{
	const struct process_deadline *until = deadline;
	int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, before = errno;
	_Bool in_time;

	PROCESS_BLOCKS();
	if (until && until->realtime)
		operation |= FUTEX_CLOCK_REALTIME;
	in_time = syscall(SYS_futex, &word->value, operation, value, until ? &until->time : 0, 0,
			  FUTEX_BITSET_MATCH_ANY) == 0 ||
		  errno != ETIMEDOUT;
	errno = before;
	return in_time;
}

static inline void process_wake(const struct platform_word *word, int most)
{
	int before = errno;

	syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, most, 0, 0, 0);
	errno = before;
}

static inline void platform_unblock(const struct platform_word *word)
{
	process_wake(word, 1);
}

static inline void platform_unblock_all(const struct platform_word *word)
{
	process_wake(word, PLATFORM_WAKE_ALL);
}

/* The seat of a thread by its number; 0: it has none. */
static inline struct platform_seat *process_seat(unspin_u32 number)
{
	return number < PLATFORM_WAITERS_MAX ? &process_seats[number] : 0;
}

/* Without a seat: lets others run, and returns without cause. errno stays as it was. */
static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	struct platform_seat *seat = process_seat(platform_waiter());
	int before = errno;

	if (seat)
		platform_seat_park(seat, word, value);
	else
		platform_help();
	errno = before;
}

static inline void platform_kick(unspin_u32 waiter)
{
	struct platform_seat *seat = process_seat(waiter);

	if (seat)
		platform_seat_kick(seat);
}

static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	platform_park(word, value);
}

static inline void platform_wake(unspin_u32 task)
{
	platform_kick(task);
}

/* A thread that is parked does not run. */
static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	const struct platform_seat *seat = process_seat(waiter);

	return seat && platform_seat_parked(seat);
}

static inline _Bool platform_is_overloaded(void)
{
	return 0;
}

/* Threads have no spin count of a host. */
static inline unspin_u32 platform_spin_count(unspin_u32 own)
{
	return own;
}

static inline unspin_u32 platform_runnable_tasks(void)
{
	return 1;
}

#endif
