/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * refusing.c - a user's policy that does harm, for tests: it refuses every yield, whatever the policies after it would do.
 */
#include <unspin/policy/contract.h>

UNSPIN_PURE struct unspin_decision refusing_on_yield(const struct unspin_facts *facts,
						     struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_REFUSE, 0);
}

UNSPIN_PURE struct unspin_decision refusing_on_slice_end(const struct unspin_facts *facts,
							 struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

UNSPIN_PURE struct unspin_decision refusing_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

UNSPIN_PURE void refusing_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
}
