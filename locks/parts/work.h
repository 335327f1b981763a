/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * work.h - what all drivers of locks share: the work loop, the random draws of an iteration, the histograms.
 *
 * Guest and threads run the same instructions and, from the same seed, draw the same numbers. Integers only; no state
 * but what is passed in; any context.
 */
#ifndef UNSPIN_LOCKS_WORK_H
#define UNSPIN_LOCKS_WORK_H

#include "../../abi/guest/memory.h"

/*
 * The unit of all work: two instructions an iteration, no memory access, aligned so that they never straddle a fetch
 * block. REGISTER counts down to 0; it must not begin as 0. The same instructions in kernel mode, user mode and
 * threads.
 */
#define UNSPIN_WORK_LOOP(REGISTER) "\n\t.p2align 5\n1:\tdec " REGISTER "\n\tjnz 1b\n"

/* Runs that many iterations of the loop; 0 does nothing. */
static inline void work_loops(unspin_u32 loops)
{
#if defined(__x86_64__)
	if (loops)
		__asm__ volatile(UNSPIN_WORK_LOOP("%%ecx") : "+c"(loops) : : "cc");
#else
	while (loops--)
		__asm__ volatile("");
#endif
}

/* splitmix64 (Steele, Lea and Flood 2014): 64 random bits, period 2^64; any state is a valid seed. */
static inline unspin_u64 random_next(unspin_u64 *state)
{
	unspin_u64 mixed = *state += 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
	return mixed ^ (mixed >> 31);
}

/* The initial state of one vCPU's or thread's generator, far from those of other numbers and of neighbouring seeds. */
static inline unspin_u64 random_start(unspin_u64 seed, unspin_u32 number)
{
	unspin_u64 state = seed ^ ((unspin_u64)number << 32);

	random_next(&state);
	return random_next(&state) + number;
}

/* What one iteration does. */
struct iteration_draw {
	unspin_u32 user_loops;
	unspin_u32 kernel_loops;
	unspin_u32 hold_loops;
	unspin_u32 lock; /* 0..locks-1 */
};

/*
 * Draws an iteration from 64 random bits: 8 choose the quantile of each distribution, 32 the lock. `locks` is 1..64
 * (the multiplication's bias is below 2^-26), or 0 for a private lock each: then `lock` is 0 and the caller replaces it
 * by its number.
 */
static inline struct iteration_draw iteration_draw(unspin_u64 *state, const struct unspin_distribution *user_work,
						   const struct unspin_distribution *kernel_work,
						   const struct unspin_distribution *hold, unspin_u32 locks)
{
	unspin_u64 bits = random_next(state);

	return (struct iteration_draw){
		.user_loops = user_work->quantile_loops[bits & 0xff],
		.kernel_loops = kernel_work->quantile_loops[bits >> 8 & 0xff],
		.hold_loops = hold->quantile_loops[bits >> 16 & 0xff],
		.lock = (unspin_u32)((bits >> 32) * locks >> 32),
	};
}

/* The bucket of a value, 0..63: floor(log2(value)), and 0 for 0. */
static inline unspin_u32 histogram_bucket(unspin_u64 cycles)
{
	return 63u - (unspin_u32)__builtin_clzll(cycles | 1);
}

/* Adds a value to the histogram, by number and by time (ruling 4). For the histogram's owner only. */
static inline void histogram_add(struct unspin_histogram *histogram, unspin_u64 cycles)
{
	unspin_u32 bucket = histogram_bucket(cycles);

	histogram->count[bucket]++;
	histogram->sum_cycles[bucket] += cycles;
}

#endif
