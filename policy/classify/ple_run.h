/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ple_run.h - continuous runs of pause-loop exits: VEE'21, section 2.3 and Figure 4, by ruling 29.
 *
 * A run is exits at the same code location on the same vCPU with neither exits at other locations nor VM exits of other
 * kinds between. A host interrupt ends a run, or does not: both are counted. Lengths are weighted by exits: what counts is
 * the share of exits that belong to long runs.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_PLE_RUN_H
#define UNSPIN_POLICY_CLASSIFY_PLE_RUN_H

#include "../../abi/bpf/events.h"

/* Whether host interrupts end runs. */
enum unspin_ple_run_rule {
	UNSPIN_RUN_INTERRUPTS_END = 0, /* ruling 29's first form, and the paper's */
	UNSPIN_RUN_INTERRUPTS_IGNORED = 1,
	UNSPIN_RUN_RULES = 2,
};

/* The run that a vCPU is in. Zeroes: none. */
struct unspin_ple_run {
	unspin_u64 location; /* guest instruction pointer */
	unspin_u64 exits;    /* 0: there is no run */
};

/* One pause-loop exit, as UNSPIN_EVENT_PAUSE_EXIT has it. */
struct unspin_ple_run_exit {
	unspin_u64 location;	    /* guest instruction pointer, or UNSPIN_UNKNOWN: it belongs to no run */
	unspin_u32 other_exits;	    /* since the vCPU's previous pause-loop exit, host interrupts not counted */
	unspin_u32 interrupt_exits; /* for host interrupts since then */
};

/* Ends the run and returns how many exits it had; 0 without one. */
static inline unspin_u64 unspin_ple_run_end(struct unspin_ple_run *run)
{
	unspin_u64 exits = run->exits;

	run->exits = 0;
	return exits;
}

/* Takes one exit into account. Returns the length of the run that it ended, 0 if it ended none. */
static inline unspin_u64 unspin_ple_run_add(struct unspin_ple_run *run, const struct unspin_ple_run_exit *exit,
					    unspin_u32 rule)
{
	unspin_u64 ended = 0;
	_Bool interrupted = rule == UNSPIN_RUN_INTERRUPTS_END && exit->interrupt_exits != 0;

	if (exit->location == UNSPIN_UNKNOWN || exit->location != run->location || exit->other_exits != 0 ||
	    interrupted)
		ended = unspin_ple_run_end(run);
	if (exit->location == UNSPIN_UNKNOWN)
		return ended;
	run->location = exit->location;
	run->exits++;
	return ended;
}

/* Figure 4's two marks, weighted by exits. Zeroes to begin with. */
struct unspin_ple_run_shares {
	unspin_u64 exits;	      /* in runs */
	unspin_u64 above_twice_vcpus; /* of them in runs longer than 2 x vCPUs: KVM's two rounds are over */
	unspin_u64 above_hundred;     /* of them in runs longer than 100 */
	unspin_u64 runs;
	unspin_u64 longest;
};

/* Adds a run that has ended, of `exits` exits (0: none) in a VM of so many vCPUs. */
static inline void unspin_ple_run_count(struct unspin_ple_run_shares *shares, unspin_u64 exits, unspin_u64 vcpus)
{
	if (exits == 0)
		return;
	shares->exits += exits;
	shares->runs++;
	if (exits > 2 * vcpus)
		shares->above_twice_vcpus += exits;
	if (exits > 100)
		shares->above_hundred += exits;
	if (exits > shares->longest)
		shares->longest = exits;
}

#endif
