/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * driver.h - one throughput, one validation and one latency driver for every lock, as concurrencykit/ck has them.
 *
 * driver.c is compiled once per lock (build.rs, from lock_kinds.h) with DRIVER_LOCK set to the lock's name; drivers.c
 * gathers the results in a table. src/ffi.rs mirrors these structures and checks their sizes.
 *
 * The caller (Rust) makes the threads. Each calls iterations() or validate() once; what they share is in driver_run.
 */
#ifndef UNSPIN_BENCH_DRIVER_H
#define UNSPIN_BENCH_DRIVER_H

#include "../../../abi/guest/memory.h"
#include "../../../abi/guest/lock_kinds.h"
#include "../../../locks/platform/contract.h"

/* Values of driver_run.phase, in this order. */
enum driver_phase {
	DRIVER_WARM_UP = 0, /* run, and forget what was counted */
	DRIVER_MEASURE = 1,
	DRIVER_STOP = 2, /* finish the iteration and return */
};

/* What the threads of one run share. Read-only while they run, but for *phase and the slots. */
struct driver_run {
	const struct unspin_distribution *user_work; /* both kinds of work are done outside the lock */
	const struct unspin_distribution *kernel_work;
	const struct unspin_distribution *hold;
	void *slots;		     /* prepared; max(locks, threads) of them, aligned as driver.slot_alignment says */
	struct platform_word *phase; /* enum driver_phase, moved on by the caller */
	unspin_u64 seed;	     /* a thread's random numbers follow from it and its number */
	unspin_u32 locks;      /* 1..64: each iteration draws one; 0: a thread uses the slot of its own number, alone */
	unspin_u32 iterations; /* measured iterations per thread, then return; 0: until DRIVER_STOP */
	unspin_u32 pause_every_spins; /* 1..65536 */
	unspin_u32 stall_spins;	      /* ruling 10: 2048 */
	struct platform_table *table; /* which the threads join; 0: none, and nobody parks */
	unspin_u64 reserved;
};
UNSPIN_ASSERT_SIZE(struct driver_run, 80);

/*
 * Buckets of the times to acquire: one for each of 0..7 cycles, then eight to a power of two, so that a percentile is at most
 * an eighth too low.
 */
#define DRIVER_ACQUIRE_BUCKETS 496u

/* What iterations() saw: the first two with the warm-up included, the others of the measured part. */
struct driver_outcome {
	unspin_u64 entries;	   /* into critical sections */
	unspin_u64 violations;	   /* somebody else was inside */
	unspin_u64 cpu_ns;	   /* that the thread ran (CLOCK_THREAD_CPUTIME_ID) */
	unspin_u64 longest_cycles; /* to acquire */
	unspin_u64 parks;	   /* waits in the kernel */
	unspin_u64
		acquire_count[DRIVER_ACQUIRE_BUCKETS]; /* all acquisitions, those that waited and those that did not */
};
UNSPIN_ASSERT_SIZE(struct driver_outcome, 40 + 8 * DRIVER_ACQUIRE_BUCKETS);

/* The bucket of a time, 0..DRIVER_ACQUIRE_BUCKETS-1. */
static inline unspin_u32 driver_acquire_bucket(unspin_u64 cycles)
{
	unspin_u32 power = 63u - (unspin_u32)__builtin_clzll(cycles | 1);

	return cycles < 8 ? (unspin_u32)cycles : (power - 2) * 8 + (unspin_u32)(cycles >> (power - 3) & 7);
}

/* What validate() saw. */
struct driver_validation {
	unspin_u64 locked;     /* by lock() */
	unspin_u64 try_locked; /* by trylock() */
	unspin_u64 try_refused;
	unspin_u64 violations; /* somebody else inside, or is_locked() false to the holder */
};
UNSPIN_ASSERT_SIZE(struct driver_validation, 32);

/* One lock's drivers. */
struct driver {
	const char *name;      /* as in lock_kinds.h */
	unspin_u64 slot_bytes; /* stride of slots; a multiple of slot_alignment */
	unspin_u64 slot_alignment;
	/* Initialises `count` slots; nobody else may see them yet. */
	void (*prepare)(void *slots, unspin_u32 count);
	/* Entries into the critical sections of `count` slots, from plain counters: right only under mutual exclusion. */
	unspin_u64 (*entries)(const void *slots, unspin_u32 count);
	/* How many of `count` slots say that they are locked; to be 0 when all threads are back. */
	unspin_u64 (*still_locked)(const void *slots, unspin_u32 count);
	/*
	 * Takes and releases locks until the run ends. `statistics` (of the measured part) and `outcome` are the caller's
	 * alone; fields of other worlds (ticks, shootdowns, ...) stay 0; times are TSC cycles.
	 */
	void (*iterations)(const struct driver_run *run, unspin_u32 thread, struct unspin_guest_statistics *statistics,
			   struct driver_outcome *outcome);
	/* run->iterations iterations of lock() or trylock(), at random, with as little work as possible between them. */
	void (*validate)(const struct driver_run *run, unspin_u32 thread, struct driver_validation *validation);
	/* TSC cycles of `pairs` lock-unlock pairs of slot 0 by one thread alone. */
	unspin_u64 (*latency)(void *slots, unspin_u32 pairs);
};

/* By number of lock_kinds.h; UNSPIN_LOCK_KIND_COUNT of them. */
extern const struct driver *const driver_table[UNSPIN_LOCK_KIND_COUNT];

/* A table as the threads of a run need it, zeroed: no run_states, nobody has joined. 0 when there is no memory. */
struct platform_table *driver_table_new(void);
/* Nobody has joined it any more. 0 is allowed. */
void driver_table_free(struct platform_table *table);
/* How threads that join from now on get their run_states: enum platform_run_states. `page`: PLATFORM_WAITERS_MAX structs, or 0. */
void driver_table_run_states(struct platform_table *table, unspin_u32 run_states,
			     const struct unspin_thread_run_state *page);
/* Threads that join from now on ask the kernel for time-slice extension. */
void driver_table_wants_slice(struct platform_table *table);
/* Whether this kernel gives the calling thread what it asks for: bit 0 rseq, bit 1 time-slice extension. */
unspin_u32 driver_probe_rseq(void);

/* Rows of eCS's Table 4, and their names: spinlock, rwlock_read, ...; 0 for a number that is none. */
#define DRIVER_ECS_ROWS 7u
const char *driver_ecs_name(unspin_u32 row);
/* What a row's threads share, fresh; 0 when there is no memory. `row` is below DRIVER_ECS_ROWS, here and below. */
void *driver_ecs_new(unspin_u32 row);
void driver_ecs_free(void *object);
/* TSC cycles of so many empty sections by the calling thread, which has joined a table; annotated or not. */
unspin_u64 driver_ecs_cycles(unspin_u32 row, void *object, unspin_u32 annotated, unspin_u32 pairs);
/* 0 when all of the calling thread's counters are back at 0, as they are outside of sections. */
unspin_u32 driver_ecs_left_over(void);
/* The calling thread counts its critical sections in this page of the scheduler's from now on; whether it was given it. */
_Bool driver_take_page(struct unspin_pv_page *page, unspin_u32 number);
/* The page of the calling thread; 0: none. */
extern _Thread_local struct unspin_pv_page *driver_page;
/* Joins and leaves a table (platform/threads.h); 0: a table of none. */
void driver_join(struct platform_table *table, unspin_u32 number);
void driver_leave(void);

/* platform_thread of the calling thread, as a copy: for tests. */
void driver_thread_state(struct platform_thread *state);

/*
 * platform/threads.h as functions, so that its counting can be tested by itself. `holder` may be 0. driver_wait()
 * is platform_wait_while().
 */
void driver_thread_start(unspin_u32 pause_every_spins, unspin_u64 stall_spins);
void driver_begin_wait(const struct platform_word *holder);
unspin_u32 driver_wait(const struct platform_word *word, unspin_u32 value, unspin_u32 spins);

/* TSC now. Not serialising: a few instructions of slack do not matter to what is measured here. */
unspin_u64 driver_tsc(void);

/* TSC cycles that `loops` (1 or more) iterations of the work loop take now; for its rate, take the least of several. */
unspin_u64 driver_time_work(unspin_u32 loops);

/* TSC cycles that `spins` spins of waiting take for a word that does not change; the least of several is the rate. */
unspin_u64 driver_time_wait(unspin_u32 spins, unspin_u32 pause_every_spins);

/* tau of the preemptable ticket lock in spins (ruling 8). */
extern const unspin_u32 driver_tau_spins;

#endif
