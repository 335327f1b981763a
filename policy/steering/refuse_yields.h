/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* refuse_yields.h - the null: the same scheduler with the same slice, and every directed yield refused. */
#ifndef UNSPIN_POLICY_STEERING_REFUSE_YIELDS_H
#define UNSPIN_POLICY_STEERING_REFUSE_YIELDS_H

#include "../contract.h"

UNSPIN_PURE struct unspin_decision refuse_yields_on_yield(const struct unspin_facts *facts,
							  struct unspin_policy_state *state)
{
	(void)facts;
	(void)state;
	return unspin_decide(UNSPIN_REFUSE, 0);
}

#endif
