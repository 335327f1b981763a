/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* none.h - the null: the same scheduler with the same slice, and every directed yield refused. */
#ifndef UNSPIN_POLICY_STEERING_NONE_H
#define UNSPIN_POLICY_STEERING_NONE_H

#include "../contract.h"

UNSPIN_PURE struct unspin_decision none_on_yield(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	(void)facts;
	(void)state;
	return unspin_decide(UNSPIN_REFUSE, 0);
}

#endif
