/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "steering_exports.h"

struct unspin_decision steering_decide(unspin_u32 event, unspin_u32 policies, const struct unspin_facts *facts,
				       struct unspin_policy_memory *memory)
{
	return policies_decide(event, policies, facts, memory);
}

void steering_on_slice_start(unspin_u32 policies, const struct unspin_facts *facts, struct unspin_policy_memory *memory)
{
	policies_on_slice_start(policies, facts, memory);
}

_Bool steering_gang_cuts(unspin_u64 ran_ns)
{
	return gang_cuts(ran_ns);
}

_Bool steering_yield_buddy_is_followed(unspin_u64 candidate_vtime, unspin_u64 first_vtime, unspin_u32 threshold_ns)
{
	return yield_buddy_is_followed(candidate_vtime, first_vtime, threshold_ns);
}

unspin_u32 steering_audit_guest(const struct unspin_guest_audit *counts)
{
	return unspin_audit_guest(counts);
}

_Bool steering_replay(const struct unspin_decision_record *record, struct unspin_policy_memory *memory,
		      struct unspin_decision *decision)
{
	return policies_replay(record, memory, decision);
}

const char *const steering_names[UNSPIN_POLICY_COUNT] = {
#define NAME(bit, prefix, name, ...) [bit] = name,
	UNSPIN_POLICIES(NAME)
#undef NAME
};

const unspin_u32 steering_order[UNSPIN_POLICY_COUNT] = {
#define BIT(bit, ...) bit,
	UNSPIN_POLICIES(BIT)
#undef BIT
};
