/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "exports.h"

struct unspin_decision steering_decide(unspin_u32 event, unspin_u32 policies, const struct unspin_facts *facts,
				       struct unspin_policy_memory *memory)
{
	return policies_decide(event, policies, facts, memory);
}

void steering_on_turn(unspin_u32 policies, const struct unspin_facts *facts, struct unspin_policy_memory *memory)
{
	policies_on_turn(policies, facts, memory);
}

const char *const steering_names[UNSPIN_POLICY_COUNT] = {
#define NAME(bit, prefix, name) [bit] = name,
	UNSPIN_POLICIES(NAME)
#undef NAME
};
