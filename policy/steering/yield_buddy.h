/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * yield_buddy.h - a directed yield as the fair class takes it: a yield buddy, followed unless it is too unfair.
 *
 * The spinner gives up its CPU and the candidate becomes the "next buddy", which runs next unless its virtual time is more
 * than a threshold after that of the task that would be next otherwise (kernel/sched/fair.c, wakeup_preempt_entity() and
 * pick_next_entity(), Linux up to 6.5; wakeup_gran()). So a spinner that ran little is picked again: VEE'21's scheduler
 * mismatch. This is what debooster.h and lag credit are added to, and so what they are compared with under our scheduler.
 */
#ifndef UNSPIN_POLICY_STEERING_YIELD_BUDDY_H
#define UNSPIN_POLICY_STEERING_YIELD_BUDDY_H

#include "../contract.h"

/*
 * The threshold by default: the wake-up granularity of CFS for nice 0, 1 ms (sysctl_sched_wakeup_granularity, Linux 5.4)
 * times 1 + log2 of the CPUs, at most 8; of two CPUs 2 ms. yield-buddy=TIME sets it. Bounds: 0 to 1 s.
 */
#define UNSPIN_THRESHOLD_NS 2000000u
#define UNSPIN_THRESHOLD_MAX_NS 1000000000u

/* Whether the yield buddy is followed: `first_vtime` is that of the task that would be next. */
UNSPIN_PURE _Bool yield_buddy_is_followed(unspin_u64 candidate_vtime, unspin_u64 first_vtime, unspin_u32 threshold_ns)
{
	unspin_u64 ahead = candidate_vtime - first_vtime;

	/* A difference of 2^63 or more is a negative one: the candidate is first. */
	return ahead >> 63 || ahead <= threshold_ns;
}

UNSPIN_PURE struct unspin_decision yield_buddy_on_yield(const struct unspin_facts *facts,
							struct unspin_policy_state *state)
{
	(void)state;
	if (!fact_is(facts->candidate.descheduled, 1))
		return unspin_decide(UNSPIN_REFUSE, 0);
	return unspin_decide(UNSPIN_YIELD_BUDDY, facts->threshold_ns);
}

#endif
