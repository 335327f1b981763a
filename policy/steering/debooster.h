/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * debooster.h - VEE'21's debooster (deboost.h) as a policy that steers: the yield buddy of yield_buddy.h, and before it the
 * spinner's virtual time goes up, so that it is not the one that runs next.
 *
 * `debooster` is the paper's form and does nothing more than the yield buddy where the two are in different cgroups (libvirt's
 * layout: one for each vCPU). `debooster_ancestor` is ours: our scheduler's virtual times are flattened (policy/mechanics/weights.h),
 * so those of two tasks in one queue compare as their ancestors at the common one would.
 */
#ifndef UNSPIN_POLICY_STEERING_DEBOOSTER_H
#define UNSPIN_POLICY_STEERING_DEBOOSTER_H

#include "../model/deboost.h"
#include "yield_buddy.h"

UNSPIN_PURE struct unspin_decision debooster_buddy(const struct unspin_facts *facts, enum unspin_deboost_form form)
{
	struct unspin_decision decision = yield_buddy_on_yield(facts, 0);
	struct unspin_deboost_facts pair = {
		.yielder_vtime = facts->order.self_vtime,
		.target_vtime = facts->order.candidate_vtime,
		.threshold = facts->threshold_ns,
		.same_cpu = facts->order.same_queue,
		.same_parent = facts->order.same_group,
	};
	unspin_u64 raised;

	if (decision.action != UNSPIN_YIELD_BUDDY)
		return decision;
	/* Never below 0: no virtual time is lowered (ruling 30). */
	raised = unspin_deboosted(form, &pair) - pair.yielder_vtime;
	decision.raise_ns = raised < UNSPIN_AGE_MAX ? (unspin_u32)raised : UNSPIN_AGE_MAX;
	return decision;
}

UNSPIN_PURE struct unspin_decision debooster_on_yield(const struct unspin_facts *facts,
						      struct unspin_policy_state *state)
{
	(void)state;
	return debooster_buddy(facts, UNSPIN_DEBOOST_PAPER);
}

UNSPIN_PURE struct unspin_decision debooster_ancestor_on_yield(const struct unspin_facts *facts,
							       struct unspin_policy_state *state)
{
	(void)state;
	return debooster_buddy(facts, UNSPIN_DEBOOST_ANCESTOR);
}

#endif
