/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * apple.h - the pause-loop window of a VM by trial and error: APPLE (Shan, Ding and Gehani), section III.D, Algorithm 1.
 *
 * For ever: an epoch at the desired window, one at delta more, one at delta less, within the bounds; then the window of the
 * epoch with the least inefficiency (inefficiency.h) is the desired one. An epoch is 1,000 pause-loop exits of the VM.
 *
 * Rulings 16, 18 and 20 where the paper is silent: ties keep the desired window, and so does a tie of the other two, which
 * gives no direction; at a bound the duplicate epoch is run all the same; an epoch whose inefficiency is not known is never
 * better than one that is, and with the desired window's unknown nothing is changed. A changed window takes effect at a
 * vCPU's next exit (ple_window.h). Windows of AMD are scaled by KVM's own defaults, 3,000 PAUSEs for 4,096 cycles.
 */
#ifndef UNSPIN_POLICY_MODEL_APPLE_H
#define UNSPIN_POLICY_MODEL_APPLE_H

#include "inefficiency.h"
#include "ple_window.h"

/* Section IV; delta 512 to "2014" (2,048, ruling 16). */
#define UNSPIN_APPLE_INITIAL_CYCLES 8192u
#define UNSPIN_APPLE_LOWER_CYCLES 4096u
#define UNSPIN_APPLE_UPPER_CYCLES 32768u
#define UNSPIN_APPLE_DELTA_CYCLES 1024u

/* All in the hardware's unit. lower <= initial <= upper, all and delta 1 or more. */
struct unspin_apple_rule {
	unspin_u32 initial;
	unspin_u32 lower;
	unspin_u32 upper;
	unspin_u32 delta;
};
UNSPIN_ASSERT_SIZE(struct unspin_apple_rule, 16);

/* The epochs of a round, in their order. */
enum unspin_apple_epoch {
	UNSPIN_APPLE_DESIRED = 0, /* E1 */
	UNSPIN_APPLE_MORE = 1,	  /* E2 */
	UNSPIN_APPLE_LESS = 2,	  /* E3 */
};

/* One VM. */
struct unspin_apple {
	unspin_u32 desired;
	unspin_u32 epoch; /* enum unspin_apple_epoch: the one that runs */
	unspin_u64 desired_ppm, more_ppm;
};
UNSPIN_ASSERT_SIZE(struct unspin_apple, 24);

/* Cycles as PAUSEs: ruling 20. */
static inline unspin_u32 unspin_apple_pauses(unspin_u32 cycles)
{
	return (unspin_u32)((unspin_u64)cycles * UNSPIN_PLE_WINDOW_PAUSES / UNSPIN_PLE_WINDOW_CYCLES);
}

/* The VM is launched. */
static inline void unspin_apple_start(const struct unspin_apple_rule *rule, struct unspin_apple *apple)
{
	apple->desired = rule->initial;
	apple->epoch = UNSPIN_APPLE_DESIRED;
	apple->desired_ppm = UNSPIN_UNKNOWN;
	apple->more_ppm = UNSPIN_UNKNOWN;
}

/* The window of an epoch of this round. */
static inline unspin_u32 unspin_apple_window_of(const struct unspin_apple_rule *rule, unspin_u32 desired,
						unspin_u32 epoch)
{
	/* The desired window stays within the bounds, so neither difference is below 0. */
	if (epoch == UNSPIN_APPLE_MORE)
		return rule->upper - desired > rule->delta ? desired + rule->delta : rule->upper;
	if (epoch == UNSPIN_APPLE_LESS)
		return desired - rule->lower > rule->delta ? desired - rule->delta : rule->lower;
	return desired;
}

/* The VM's window now. */
static inline unspin_u32 unspin_apple_window(const struct unspin_apple_rule *rule, const struct unspin_apple *apple)
{
	return unspin_apple_window_of(rule, apple->desired, apple->epoch);
}

/* Which epoch of a round was best, by its inefficiency or UNSPIN_UNKNOWN, which is above them all. */
static inline unspin_u32 unspin_apple_best(unspin_u64 desired_ppm, unspin_u64 more_ppm, unspin_u64 less_ppm)
{
	if (desired_ppm == UNSPIN_UNKNOWN)
		return UNSPIN_APPLE_DESIRED;
	if (more_ppm < desired_ppm && more_ppm < less_ppm)
		return UNSPIN_APPLE_MORE;
	if (less_ppm < desired_ppm && less_ppm < more_ppm)
		return UNSPIN_APPLE_LESS;
	return UNSPIN_APPLE_DESIRED;
}

/* The epoch is over, with that inefficiency in parts per million, or UNSPIN_UNKNOWN: the next one begins. */
static inline void unspin_apple_epoch_over(const struct unspin_apple_rule *rule, struct unspin_apple *apple,
					   unspin_u64 inefficiency_ppm)
{
	unspin_u32 best;

	if (apple->epoch == UNSPIN_APPLE_DESIRED) {
		apple->desired_ppm = inefficiency_ppm;
		apple->epoch = UNSPIN_APPLE_MORE;
	} else if (apple->epoch == UNSPIN_APPLE_MORE) {
		apple->more_ppm = inefficiency_ppm;
		apple->epoch = UNSPIN_APPLE_LESS;
	} else {
		best = unspin_apple_best(apple->desired_ppm, apple->more_ppm, inefficiency_ppm);
		apple->desired = unspin_apple_window_of(rule, apple->desired, best);
		apple->epoch = UNSPIN_APPLE_DESIRED;
	}
}

#endif
