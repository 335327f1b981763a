/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * lag_credit_buddy.h - the upstream proposal of June 2026 (lag_credit.h) as a policy that steers, adapted to sched_ext: the
 * candidate of a directed yield is made eligible, and an eligible task runs next.
 *
 * What is not as in the proposal's cover letter:
 * - there each level of cgroups gets lag; our scheduler's virtual times are flattened (policy/mechanics/weights.h), so there is one;
 * - there lag is measured from the average of the queue; here from its clock, the virtual time of its last task that began a
 *   slice while no task that waited had less (policy/mechanics/virtual_time.h), which is what places tasks here as the average does there;
 * - there entity_lag() bounds how far a task can be from the average, and so what it can be given; here nothing bounds how
 *   far ahead one is, so what it is given at once is bounded by how far our scheduler lets a task be behind;
 * - there the yielder's virtual time stays as it is; here it goes up by what the candidate's goes down. Given for nothing,
 *   credit let a VM of four vCPUs that yield to one another take all of two CPUs from two busy threads (in the lab; with the
 *   fair class's model they keep their two thirds);
 * - there a reschedule is forced once per 6 ms and run queue, for a yielder may be protected until its slice ends; here
 *   a yielder leaves its CPU each time, so there is nothing to force (unspin_lag_forces() is not asked).
 * Where the two are not of one queue it does nothing, and the yield is a plain yield buddy (yield_buddy.h).
 */
#ifndef UNSPIN_POLICY_STEERING_LAG_CREDIT_BUDDY_H
#define UNSPIN_POLICY_STEERING_LAG_CREDIT_BUDDY_H

#include "../model/lag_credit.h"
#include "yield_buddy.h"

UNSPIN_PURE unspin_u32 lag_credit_bounded(unspin_u64 time_ns)
{
	return time_ns < UNSPIN_AGE_MAX ? (unspin_u32)time_ns : UNSPIN_AGE_MAX;
}

UNSPIN_PURE struct unspin_decision lag_credit_on_yield(const struct unspin_facts *facts,
						       struct unspin_policy_state *state)
{
	struct unspin_decision decision = yield_buddy_on_yield(facts, state);
	struct unspin_lag_facts level = {
		.average_vtime = facts->order.average_vtime,
		.target_vtime = facts->order.candidate_vtime,
		.limit_vtime = facts->order.limit_vtime,
		.margin_vtime = UNSPIN_LAG_MARGIN_NS,
		.runnable = facts->order.runnable,
	};
	unspin_u64 credit, late;

	if (decision.action != UNSPIN_YIELD_BUDDY || facts->order.same_queue != UNSPIN_YES)
		return decision;
	/* Never below 0: credit only ever makes it earlier. */
	credit = level.target_vtime - unspin_lag_credited(&level);
	decision.credit_ns = lag_credit_bounded(credit < level.limit_vtime ? credit : level.limit_vtime);
	decision.raise_ns = decision.credit_ns;
	late = level.target_vtime - decision.credit_ns - level.average_vtime;
	/* Eligible, it runs whichever others are: no task is further behind than the limit (pick_next_entity(), Linux 7.2). */
	decision.budget_ns = late == 0 || late >> 63 ? lag_credit_bounded(level.limit_vtime) : 0;
	return decision;
}

#endif
