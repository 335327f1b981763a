/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * threads.h - the waiting contract (contract.h) between the threads of one process.
 *
 * Spinning makes no system calls, because the cost of a descheduled holder or waiter is to be measured. Only
 * platform_park() and platform_help() call the kernel (futex(2), sched_yield(2)). Shared accesses are __atomic builtins
 * with the order that the call names, so that ThreadSanitizer checks them. A thread calls platform_thread_start() and
 * joins a table (table.h) under its number before it takes a lock, and calls platform_thread_begin_wait() before each
 * acquisition that is to be counted. A thread that has joined no table never parks and has no run states.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_THREADS_H
#define UNSPIN_LOCKS_PLATFORM_THREADS_H

#include <time.h>

#include "atomics.h"

#define PLATFORM_WAITERS_MAX 64u
/* Each waiter's node has its own cache line. */
#define PLATFORM_NODE_ALIGNMENT 64

#include "../../abi/guest/pv_page.h"
#include "table.h"

/* The value of platform_thread.holder_at_stall that is no value of a holder word. */
#define PLATFORM_NOT_STALLED 0xffffffffu

/* The waiting loop's state of one thread. Other threads may read it only after this one has ended. */
struct platform_thread {
	unspin_u64 spins;		    /* reads of a word, in all waits since the start */
	unspin_u64 pauses;		    /* PAUSE instructions among them */
	unspin_u64 wait_spins;		    /* spins since platform_thread_begin_wait() */
	unspin_u64 stall_spins;		    /* a wait of more spins is a stall (VEE'13 section 3, ruling 10) */
	const struct platform_word *holder; /* holder word to read once at the stall; 0: none */
	unspin_u32 holder_at_stall;	    /* that word's value, or PLATFORM_NOT_STALLED */
	unspin_u32 pause_every_spins;	    /* 1 or more: PAUSE at every k-th spin */
	unspin_u32 spins_to_pause;
	unspin_u32 number;	      /* among the threads that share locks; set by platform_thread_number() */
	struct platform_table *table; /* of those threads; 0: none */
};

/* Defined once by the program (crates/lockbench/c/drivers.c). */
extern _Thread_local struct platform_thread platform_self;
extern _Thread_local struct unspin_pv_page platform_own_pv_page;

/* Clears the calling thread's counters. `pause_every_spins` is 1 or more. */
static inline void platform_thread_start(unspin_u32 pause_every_spins, unspin_u64 stall_spins)
{
	platform_self = (struct platform_thread){
		.number = platform_self.number,
		.table = platform_self.table,
		.stall_spins = stall_spins,
		.holder_at_stall = PLATFORM_NOT_STALLED,
		.pause_every_spins = pause_every_spins,
		.spins_to_pause = pause_every_spins,
	};
}

/* Sets the calling thread's number, before it takes a lock. Threads that share a lock must have different numbers. */
static inline void platform_thread_number(unspin_u32 number)
{
	platform_self.number = number;
}

/*
 * The calling thread joins the table under this number until it leaves. The table must exist until then. A thread with
 * a number of PLATFORM_WAITERS_MAX or more has no seat and never parks.
 */
static inline void platform_thread_join(struct platform_table *table, unspin_u32 number)
{
	platform_self.number = number;
	platform_self.table = table;
	platform_own_pv_page = (struct unspin_pv_page){.magic = UNSPIN_PV_PAGE_MAGIC};
	if (!table || number >= PLATFORM_WAITERS_MAX)
		return;
	platform_exchange_ordered(&table->seats[number].permit, PLATFORM_PERMIT_NONE);
	if (platform_load_relaxed(&table->run_states) == PLATFORM_RUN_STATES_RSEQ ||
	    platform_load_relaxed(&table->wants_slice))
		platform_seat_register(&table->seats[number], platform_load_relaxed(&table->wants_slice));
	platform_store_release(&table->seats[number].joined, 1);
	for (unspin_u32 used = platform_load_relaxed(&table->seats_used); used <= number;) {
		unspin_u32 seen = platform_compare_exchange_ordered(&table->seats_used, used, number + 1);

		used = seen == used ? number + 1 : seen;
	}
}

/* The seat of thread `number` in the caller's table; 0 if there is none. */
static inline struct platform_seat *platform_thread_seat(unspin_u32 number)
{
	struct platform_table *table = platform_self.table;

	return table && number < PLATFORM_WAITERS_MAX ? &table->seats[number] : 0;
}

/* The calling thread leaves its table. It must hold no lock of the table's group and take none afterwards. */
static inline void platform_thread_leave(void)
{
	struct platform_seat *seat = platform_thread_seat(platform_self.number);

	if (seat) {
		platform_store_release(&seat->joined, 0);
		platform_seat_unregister(seat);
	}
	platform_self.table = 0;
}

static inline unspin_u32 platform_waiter(void)
{
	return platform_self.number;
}

static inline unspin_u32 platform_task(void)
{
	return platform_self.number;
}

/* An acquisition begins: its spins are counted from 0. At a stall `holder` is read (0: nothing is). */
static inline void platform_thread_begin_wait(const struct platform_word *holder)
{
	platform_self.wait_spins = 0;
	platform_self.holder = holder;
	platform_self.holder_at_stall = PLATFORM_NOT_STALLED;
}

/* PAUSE on x86, YIELD on arm64; elsewhere a compiler barrier. */
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

/*
 * The acquisition has waited for more than stall_spins: notes which thread holds the lock now. Relaxed: it is a sample.
 */
static inline void platform_thread_stalled(struct platform_thread *self)
{
	self->holder_at_stall = self->holder ? platform_load_relaxed(self->holder) : PLATFORM_NOT_STALLED;
}

/* Each read is an acquire load, because in some locks seeing the change is the acquisition. */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	struct platform_thread *self = &platform_self;
	unspin_u32 seen = value;

	while (spins) {
		if (spins != PLATFORM_FOREVER)
			spins--;
		self->spins++;
		if (++self->wait_spins == self->stall_spins + 1)
			platform_thread_stalled(self);
		seen = platform_load_acquire(word);
		if (seen != value)
			break;
		if (--self->spins_to_pause == 0) {
			self->spins_to_pause = self->pause_every_spins;
			self->pauses++;
			platform_thread_pause();
		}
	}
	return seen;
}

/* Counted as spins. */
static inline void platform_pause(unspin_u32 spins)
{
	struct platform_thread *self = &platform_self;

	self->spins += spins;
	self->pauses += spins;
	if (self->wait_spins <= self->stall_spins && self->wait_spins + spins > self->stall_spins)
		platform_thread_stalled(self);
	self->wait_spins += spins;
	while (spins--)
		platform_thread_pause();
}

/* The kernel adds the thread's timer slack, another 50 us by default (prctl(2), PR_SET_TIMERSLACK). */
static inline void platform_nap(void)
{
	struct timespec time = {0, PLATFORM_NAP_NS};

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, 0);
}

/* A futex. No thread of this world has a deadline. A wait counts as one of the thread's parks. */
#define PLATFORM_HAS_BLOCK
static inline _Bool platform_block(const struct platform_word *word, unspin_u32 value, const void *deadline)
{
	struct platform_seat *seat = platform_thread_seat(platform_self.number);

	(void)deadline;
	if (seat)
		platform_store_relaxed(&seat->parks, platform_load_relaxed(&seat->parks) + 1);
	syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
	return 1;
}

static inline void platform_unblock(const struct platform_word *word)
{
	syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static inline void platform_unblock_all(const struct platform_word *word)
{
	syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, PLATFORM_WAKE_ALL, 0, 0, 0);
}

/* A thread without a seat returns at once and continues to spin, which the contract allows. */
static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	struct platform_seat *seat = platform_thread_seat(platform_self.number);

	if (seat)
		platform_seat_park(seat, word, value);
}

static inline void platform_kick(unspin_u32 waiter)
{
	struct platform_seat *seat = platform_thread_seat(waiter);

	if (seat)
		platform_seat_kick(seat);
}

/* A thread is its own task. */
static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	platform_park(word, value);
}

static inline void platform_wake(unspin_u32 task)
{
	platform_kick(task);
}

/* A thread cannot yield to another by name: the same as platform_help(). */
static inline void platform_help(void)
{
	syscall(SYS_sched_yield);
}

static inline void platform_help_named(unspin_u32 waiter)
{
	(void)waiter;
	syscall(SYS_sched_yield);
}

/* The state that the BPF program wrote last. Relaxed: the answer may be out of date. */
static inline unspin_u32 platform_page_word(const unspin_u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/*
 * By rseq: a thread that was last on the caller's CPU does not run while the caller does, and a parked thread does not
 * run. Any other thread is taken to run.
 */
static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	const struct platform_table *table = platform_self.table;
	const struct platform_seat *seat = platform_thread_seat(waiter), *own;
	unspin_u32 cpu;

	if (!seat || waiter == platform_self.number)
		return 0;
	switch (platform_load_relaxed(&table->run_states)) {
	case PLATFORM_RUN_STATES_PAGE:
		return platform_page_word(&table->page[waiter].state) != UNSPIN_THREAD_RUNS;
	case PLATFORM_RUN_STATES_RSEQ:
		own = platform_thread_seat(platform_self.number);
		cpu = own ? platform_seat_cpu(own) : PLATFORM_NO_CPU;
		return platform_seat_parked(seat) || (cpu != PLATFORM_NO_CPU && platform_seat_cpu(seat) == cpu);
	default:
		return 0;
	}
}

/* By rseq: whether another thread of the table was last on the caller's CPU and is not parked. */
static inline _Bool platform_is_overloaded(void)
{
	const struct platform_table *table = platform_self.table;
	const struct platform_seat *own = platform_thread_seat(platform_self.number);
	unspin_u32 states = table ? platform_load_relaxed(&table->run_states) : PLATFORM_RUN_STATES_NONE, cpu, used;

	if (!own || states == PLATFORM_RUN_STATES_NONE)
		return 0;
	if (states == PLATFORM_RUN_STATES_PAGE)
		return platform_page_word(&table->page[platform_self.number].overloaded) != 0;
	cpu = platform_seat_cpu(own);
	used = cpu == PLATFORM_NO_CPU ? 0 : platform_load_relaxed(&table->seats_used);
	for (unspin_u32 number = 0; number < used; number++) {
		const struct platform_seat *seat =
			&table->seats[number]; /* in bounds: seats_used is at most their number */

		if (seat != own && platform_seat_cpu(seat) == cpu && !platform_seat_parked(seat))
			return 1;
	}
	return 0;
}

/* Threads have no spin count of a host. */
static inline unspin_u32 platform_spin_count(unspin_u32 own)
{
	return own;
}

/* A thread is a vCPU with one task. */
static inline unspin_u32 platform_runnable_tasks(void)
{
	return 1;
}

/* The calling thread's own pv page (eCS); never null. Only the thread and tests read it. */
static inline struct unspin_pv_page *platform_pv_page(void)
{
	return &platform_own_pv_page;
}

/*
 * Called around a critical section: requests that the kernel defer a reschedule (rseq time-slice extension, Linux 7.0,
 * Documentation/userspace-api/rseq.rst). The kernel grants a few microseconds at most. Both do nothing without the
 * feature.
 */
static inline void platform_slice_begin(void)
{
	struct platform_seat *seat = platform_thread_seat(platform_self.number);

	if (seat && platform_load_relaxed(&seat->has_slice))
		__atomic_store_n(&seat->rseq[PLATFORM_RSEQ_REQUEST], 1, __ATOMIC_RELAXED);
	__asm__ volatile("" ::: "memory");
}

static inline void platform_slice_end(void)
{
	struct platform_seat *seat = platform_thread_seat(platform_self.number);

	__asm__ volatile("" ::: "memory");
	if (!seat || !platform_load_relaxed(&seat->has_slice))
		return;
	__atomic_store_n(&seat->rseq[PLATFORM_RSEQ_REQUEST], 0, __ATOMIC_RELAXED);
	if (__atomic_load_n(&seat->rseq[PLATFORM_RSEQ_GRANTED], __ATOMIC_RELAXED))
		syscall(PLATFORM_SYS_RSEQ_SLICE_YIELD);
}

#endif
