/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * trial.h - whether a VM does more under one policy than under another, by epochs in ABBA order: the method of `unspin compare`
 * (docs/method.md) in integers.
 *
 * Two epochs that follow one another, one of each policy, are a pair; what is kept of it is the second policy's part of both, a
 * number from 0 to 65,536: 32,768 means equal. A verdict needs an interval (Student's t, one-sided 99.5 %, since it is looked at after
 * each pair) that excludes chance.
 */
#ifndef UNSPIN_POLICY_AUTO_TRIAL_H
#define UNSPIN_POLICY_AUTO_TRIAL_H

#include "../../abi/bpf/events.h"

/* Most pairs; then it is not resolved, and what acts stays. Ours. */
#define UNSPIN_TRIAL_PAIRS 12u
/* Parts: of policies that are equal; of one that is better by a hundredth, which a change must bring (1.01 / 2.01). */
#define UNSPIN_TRIAL_EQUAL 32768u
#define UNSPIN_TRIAL_GAIN 32931u
/*
 * Of one that is worse by a fifth (0.8 / 1.8), and of one that does half (0.5 / 1.5): where all pairs are below the first, three are
 * enough, or two of which one is below the second. Ours. Of equal policies one in thirty is dropped so where epochs differ by two fifths,
 * as those of hackbench in Linux guests; where two pairs were enough that lost a tenth each it was one in seven.
 */
#define UNSPIN_TRIAL_LOSS 29127u
#define UNSPIN_TRIAL_HALF 21845u
#define UNSPIN_TRIAL_LOSSES 3u
/* Of one that is worse by a tenth (0.9 / 1.9): in haste, where two pairs are enough that are below it. */
#define UNSPIN_TRIAL_TENTH 31043u

enum unspin_trial_verdict {
	UNSPIN_TRIAL_OPEN = 0,
	UNSPIN_TRIAL_BETTER = 1,     /* by a hundredth or more */
	UNSPIN_TRIAL_NOT_BETTER = 2, /* by less than that, or worse */
	UNSPIN_TRIAL_UNRESOLVED = 3, /* after the most pairs */
};

/* Zeroes to begin with. */
struct unspin_trial {
	unspin_u64 sum;	    /* of parts */
	unspin_u64 squares; /* of parts, squared */
	unspin_u32 pairs;
	unspin_u32 losses; /* pairs below UNSPIN_TRIAL_LOSS, those below UNSPIN_TRIAL_HALF twice */
	unspin_u32 others; /* pairs above UNSPIN_TRIAL_LOSS */
	unspin_u32 tenths; /* pairs below UNSPIN_TRIAL_TENTH */
};
UNSPIN_ASSERT_SIZE(struct unspin_trial, 32);

/* The interval's bounds, as parts. */
struct unspin_trial_interval {
	unspin_u32 low, middle, high;
};
UNSPIN_ASSERT_SIZE(struct unspin_trial_interval, 12);

/* Adds a pair: useful time per time, in any unit below 2^47, under the policy that acts and under the one on trial. */
static inline void unspin_trial_add(struct unspin_trial *trial, unspin_u64 acting, unspin_u64 tried)
{
	unspin_u64 part = acting + tried != 0 ? (tried << 16) / (acting + tried) : UNSPIN_TRIAL_EQUAL;

	trial->sum += part;
	trial->squares += part * part;
	trial->pairs++;
	trial->losses += (part < UNSPIN_TRIAL_LOSS) + (part < UNSPIN_TRIAL_HALF);
	trial->others += part >= UNSPIN_TRIAL_LOSS;
	trial->tenths += part < UNSPIN_TRIAL_TENTH;
}

/* The square root of a number below 2^62, rounded down. */
static inline unspin_u64 unspin_root(unspin_u64 of)
{
	unspin_u64 root = 0, bit;

	for (bit = 1ull << 30; bit != 0; bit >>= 1)
		if ((root + bit) * (root + bit) <= of)
			root += bit;
	return root;
}

/* Of 2 pairs or more: UNSPIN_TRIAL_PAIRS at most. */
static inline struct unspin_trial_interval unspin_trial_interval_of(const struct unspin_trial *trial)
{
	/* Student's t, 0.995 quantile, times 256, by degrees of freedom from 1 on. */
	static const unspin_u32 t_256[UNSPIN_TRIAL_PAIRS - 1] = {16296, 2541, 1495, 1179, 1032, 949,
								 896,	859,  832,  811,  795};
	unspin_u64 n = trial->pairs, mean = trial->sum / n;
	/* n * n times the sum of squared deviations over n; 0 or more, and below 2^40. */
	unspin_u64 spread = n * trial->squares - trial->sum * trial->sum;
	unspin_u64 half = unspin_root(spread / (n - 1)) * t_256[n - 2] / (256 * n);

	return (struct unspin_trial_interval){
		(unspin_u32)(mean > half ? mean - half : 0),
		(unspin_u32)mean,
		(unspin_u32)(mean + half < 65536 ? mean + half : 65536),
	};
}

/* enum unspin_trial_verdict, after a pair was added. `hasty`: two clear pairs are enough. */
static inline unspin_u32 unspin_trial_verdict(const struct unspin_trial *trial, _Bool hasty)
{
	struct unspin_trial_interval interval;

	if (trial->pairs < 2)
		return UNSPIN_TRIAL_OPEN;
	if (trial->others == 0 && trial->losses >= UNSPIN_TRIAL_LOSSES)
		return UNSPIN_TRIAL_NOT_BETTER;
	if (hasty && trial->tenths == trial->pairs)
		return UNSPIN_TRIAL_NOT_BETTER;
	interval = unspin_trial_interval_of(trial);
	if (interval.low > UNSPIN_TRIAL_GAIN)
		return UNSPIN_TRIAL_BETTER;
	if (interval.high < UNSPIN_TRIAL_GAIN)
		return UNSPIN_TRIAL_NOT_BETTER;
	return trial->pairs < UNSPIN_TRIAL_PAIRS ? UNSPIN_TRIAL_OPEN : UNSPIN_TRIAL_UNRESOLVED;
}

#endif
