/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * kernel_exit.h - Friebel 2008's avoidance: a vCPU about to lose its CPU in kernel mode continues until it leaves the kernel.
 *
 * Ruling 7: postponed to kernel exit, bounded; not a fixed grace. The guest's pv page decides if it has one (nothing
 * requested and nothing held: no grace, wherever it is); otherwise the mode at its last exit. Nothing in user mode, one
 * grace a slice (ruling 22), and none for a vCPU that spun in this slice: its holder is somewhere else. Nor for one that waits for
 * the answer of a vCPU which does not run: it spins, even without a pause-loop exit. Unknown: PASS.
 */
#ifndef UNSPIN_POLICY_STEERING_KERNEL_EXIT_H
#define UNSPIN_POLICY_STEERING_KERNEL_EXIT_H

#include "../contract.h"

/* Whether it is in a place where it had better not be stopped; unknown counts as no. */
UNSPIN_PURE _Bool kernel_exit_protects(const struct unspin_vcpu_facts *self)
{
	if (fact_known(self->critical))
		return self->critical.value != 0;
	return fact_is(self->mode, UNSPIN_FACT_KERNEL);
}

/* state->words[0]: graces given in this slice. */
UNSPIN_PURE void kernel_exit_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	(void)facts;
	state->words[0] = 0;
}

UNSPIN_PURE struct unspin_decision kernel_exit_on_slice_end(const struct unspin_facts *facts,
							    struct unspin_policy_state *state)
{
	if (state->words[0] || !fact_is(facts->self.spun, 0) || fact_is(facts->self.awaits, UNSPIN_AWAITS_NOW) ||
	    !kernel_exit_protects(&facts->self))
		return unspin_decide(UNSPIN_PASS, 0);
	state->words[0] = 1;
	return unspin_decide(UNSPIN_GRANT, UNSPIN_BUDGET_NS);
}

UNSPIN_PURE struct unspin_decision kernel_exit_on_poll(const struct unspin_facts *facts,
						       struct unspin_policy_state *state)
{
	(void)state;
	if (!fact_known(facts->self.critical) && !fact_known(facts->self.mode))
		return unspin_decide(UNSPIN_PASS, 0);
	return unspin_decide(kernel_exit_protects(&facts->self) ? UNSPIN_PASS : UNSPIN_GIVE_BACK, 0);
}

#endif
