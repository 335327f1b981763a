/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * threads.h - the waiting contract (contract.h) between the threads of one process.
 *
 * Spinning is plain: no sched_yield, no futex; what a descheduled holder or waiter costs is the thing to be seen. Only a lock that
 * asks to park or for help goes to the kernel (futex(2), sched_yield(2)).
 * Shared accesses are the compiler's __atomic builtins with the order that the call names, so ThreadSanitizer sees
 * them. A thread joins a table (table.h) under its number, sets its platform_thread up with platform_thread_start()
 * before it takes a lock, and calls platform_thread_begin_wait() before each acquisition that is to be counted. A thread that
 * has joined none never parks and has no run states.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_THREADS_H
#define UNSPIN_LOCKS_PLATFORM_THREADS_H

#include "atomics.h"

#define PLATFORM_WAITERS_MAX 64u
/* A waiter's node has a cache line of its own. */
#define PLATFORM_NODE_ALIGNMENT 64

#include "../../abi/guest/pv_page.h"
#include "table.h"

/* Values of platform_thread.holder_at_stall that are not a holder word's value. */
#define PLATFORM_NOT_STALLED 0xffffffffu

/* What the waiting loop keeps for one thread; no other thread reads it while this one runs. */
struct platform_thread {
	unspin_u64 spins;		    /* reads of a word, in all waits since the start */
	unspin_u64 pauses;		    /* PAUSE instructions among them */
	unspin_u64 wait_spins;		    /* spins since platform_thread_begin_wait() */
	unspin_u64 stall_spins;		    /* a wait of more spins is a stall (VEE'13 section 3, ruling 10) */
	const struct platform_word *holder; /* read once, at the moment of the stall; 0: not asked for */
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

/* Gives the calling thread its number, before it takes a lock: no two threads that share one may have the same. */
static inline void platform_thread_number(unspin_u32 number)
{
	platform_self.number = number;
}

/*
 * The calling thread has that number in the table from now until it leaves. The table must outlive that. A number of
 * PLATFORM_WAITERS_MAX or more has no seat: it never parks.
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

/* The seat of a thread of the caller's table; 0 when there is none. */
static inline struct platform_seat *platform_thread_seat(unspin_u32 number)
{
	struct platform_table *table = platform_self.table;

	return table && number < PLATFORM_WAITERS_MAX ? &table->seats[number] : 0;
}

/* The calling thread holds and awaits nothing, and takes no lock of its table any more. */
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

/* An acquisition begins: its spins count from 0, and a stall reads `holder` (0: nothing). */
static inline void platform_thread_begin_wait(const struct platform_word *holder)
{
	platform_self.wait_spins = 0;
	platform_self.holder = holder;
	platform_self.holder_at_stall = PLATFORM_NOT_STALLED;
}

/* Marks a waiting loop for the core; elsewhere than on x86 and arm64 for the compiler only. */
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

/* The acquisition has waited for more than stall_spins: which thread holds the lock now? Relaxed: the answer is a sample. */
static inline void platform_thread_stalled(struct platform_thread *self)
{
	self->holder_at_stall = self->holder ? platform_load_relaxed(self->holder) : PLATFORM_NOT_STALLED;
}

/* Each read is an acquire load: with some locks, seeing the change is the acquisition. */
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

/* A thread of no table, or with too great a number, continues to spin, which the contract allows. */
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

/* Between threads none can be named. */
static inline void platform_help(void)
{
	syscall(SYS_sched_yield);
}

static inline void platform_help_named(unspin_u32 waiter)
{
	(void)waiter;
	syscall(SYS_sched_yield);
}

/* From the page of the BPF program: what it wrote last. Relaxed: any value is allowed at any time. */
static inline unspin_u32 platform_page_word(const unspin_u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/*
 * By rseq: a thread that was last on my CPU does not run while I do; what it does elsewhere is not known: no. A thread that is
 * parked does not run either.
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

/* By rseq: another thread of the table was last on my CPU and is not parked. */
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

/* It is not set for threads. */
static inline unspin_u32 platform_spin_count(unspin_u32 own)
{
	return own;
}

/* A thread is a vCPU with one task. */
static inline unspin_u32 platform_runnable_tasks(void)
{
	return 1;
}

/* What the calling thread publishes of itself (eCS); never 0. The thread and tests alone read it. */
static inline struct unspin_pv_page *platform_pv_page(void)
{
	return &platform_own_pv_page;
}

/*
 * Around a critical section: please no reschedule now (Linux 7.0, Documentation/userspace-api/rseq.rst). The kernel grants some
 * microseconds at most. Without the feature both do nothing.
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
