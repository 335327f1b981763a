/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * work.h - what every driver of locks does alike: the work loop, the random draws of an iteration, the histograms.
 *
 * Guest and threads run the same instructions and, from the same seed, draw the same numbers. Integers only, no
 * state but what is passed in, nothing shared: any context may call it.
 */
#ifndef UNSPIN_LOCKS_WORK_H
#define UNSPIN_LOCKS_WORK_H

#include "../../abi/guest/memory.h"

/*
 * The unit of all work: two instructions an iteration, no memory, aligned so that they never straddle a fetch block. REGISTER
 * counts down and ends as 0; it must not begin as 0. One text for kernel, user mode and threads.
 */
#define UNSPIN_WORK_LOOP(REGISTER) "\n\t.p2align 5\n1:\tdec " REGISTER "\n\tjnz 1b\n"

/* So many iterations of that loop; 0 does nothing. */
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

/* splitmix64 (Steele, Lea and Flood 2014): 64 random bits, period 2^64, any state is a good seed. */
static inline unspin_u64 random_next(unspin_u64 *state)
{
	unspin_u64 mixed = *state += 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
	return mixed ^ (mixed >> 31);
}

/* Where the generator of one vCPU or thread starts: far from those of its neighbours and of neighbouring seeds. */
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
 * Draws an iteration: 64 random bits, of which 8 choose each distribution's quantile and 32 the lock. `locks` is 1..64 (the
 * multiplication's bias is below 2^-26); 0, a private lock each, gives lock 0 and the caller puts its own number.
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

/* The bucket of a value: floor of its base-2 logarithm; 0 for 0. In 0..63. */
static inline unspin_u32 histogram_bucket(unspin_u64 cycles)
{
	return 63u - (unspin_u32)__builtin_clzll(cycles | 1);
}

/* Counts a value by number and by time (ruling 4). Only the owner of the histogram may call it. */
static inline void histogram_add(struct unspin_histogram *histogram, unspin_u64 cycles)
{
	unspin_u32 bucket = histogram_bucket(cycles);

	histogram->count[bucket]++;
	histogram->sum_cycles[bucket] += cycles;
}

#endif
