/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * lag_credit_hint.h - the upstream proposal of June 2026 (lag_credit.h) as a policy that steers, adapted to sched_ext: the
 * candidate of a directed yield is made eligible, and whoever is eligible runs next.
 *
 * What is not as in the proposal's cover letter:
 * - there each level of cgroups gets lag; our scheduler's virtual times are flattened (steer_weights.bpf.h), so there is one;
 * - there lag is measured from the average of the queue; here from its clock, the virtual time of its last task that began a
 *   turn while nobody who waited had less (steer_time.bpf.h), which is what places tasks here as the average does there;
 * - there the most that entity_lag() lets stand is the limit; here it is how far our scheduler lets a task be;
 * - there a reschedule is forced once per 6 ms and run queue, for who yields may be protected until its slice ends; here
 *   who yields leaves its CPU each time, so there is nothing to force (unspin_lag_forces() is not asked).
 * As there, credit is not paid for by anybody: of all policies this one alone can buy a VM time, so it is for comparison.
 * Where the two are not of one queue it does nothing, and the yield is a plain hint (yield_hint.h).
 */
#ifndef UNSPIN_POLICY_LAG_CREDIT_HINT_H
#define UNSPIN_POLICY_LAG_CREDIT_HINT_H

#include "lag_credit.h"
#include "yield_hint.h"

UNSPIN_PURE unspin_u32 lag_credit_bounded(unspin_u64 time_ns)
{
	return time_ns < UNSPIN_AGE_MAX ? (unspin_u32)time_ns : UNSPIN_AGE_MAX;
}

UNSPIN_PURE struct unspin_decision lag_credit_on_yield(const struct unspin_facts *facts,
						       struct unspin_policy_state *state)
{
	struct unspin_decision decision = yield_hint_on_yield(facts, state);
	struct unspin_lag_facts level = {
		.average_vtime = facts->order.average_vtime,
		.target_vtime = facts->order.candidate_vtime,
		.limit_vtime = facts->order.limit_vtime,
		.margin_vtime = UNSPIN_LAG_MARGIN_NS,
		.runnable = facts->order.runnable,
	};

	if (decision.action != UNSPIN_HINT || facts->order.same_queue != UNSPIN_YES)
		return decision;
	/* Eligible, it runs whoever else is: nobody is further behind than the limit (pick_next_entity(), Linux 7.2). */
	decision.budget_ns = lag_credit_bounded(level.limit_vtime);
	/* Never below 0: credit only ever makes it earlier. */
	decision.credit_ns = lag_credit_bounded(level.target_vtime - unspin_lag_credited(&level));
	return decision;
}

#endif
