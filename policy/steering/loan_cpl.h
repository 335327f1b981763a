/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * loan_cpl.h - the loan for guests without pv pages: "in the kernel" stands for "waits or holds", the first poll that
 * finds the borrower in user mode for "has unlocked" (docs/decisions/design.md#silent-guests).
 *
 * A vCPU in the kernel need not have anything to do with a lock, and one that has unlocked may stay in the kernel: both
 * make it worse than loan.h. A borrower that spins itself gives the CPU back. Where self also waits for answers to interrupts
 * (answer.h), most of those in the kernel do so too: one that has spun itself is not lent to then. Unknown mode (not seen yet, or
 * hidden): PASS. The mode of a descheduled vCPU cannot change, whatever its age; that of a running one is as old as its last exit.
 */
#ifndef UNSPIN_POLICY_STEERING_LOAN_CPL_H
#define UNSPIN_POLICY_STEERING_LOAN_CPL_H

#include "loan.h"

UNSPIN_PURE struct unspin_decision loan_cpl_on_yield(const struct unspin_facts *facts,
						     struct unspin_policy_state *state)
{
	(void)state;
	if (fact_is(facts->self.borrows, 1))
		return unspin_decide(UNSPIN_GIVE_BACK, 0);
	if (answer_may_be_awaited(&facts->candidate))
		return answer_on_yield(facts);
	if (!fact_known(facts->candidate.mode))
		return unspin_decide(UNSPIN_PASS, 0);
	if (facts->candidate.mode.value != UNSPIN_FACT_KERNEL || !fact_is(facts->candidate.descheduled, 1) ||
	    (answers_are_awaited_by(&facts->self) && fact_is(facts->candidate.yielded, 1)))
		return unspin_decide(UNSPIN_REFUSE, 0);
	return unspin_decide(UNSPIN_LEND, UNSPIN_BUDGET_NS);
}

UNSPIN_PURE struct unspin_decision loan_cpl_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	(void)state;
	return unspin_decide(fact_is(facts->self.mode, UNSPIN_FACT_USER) ? UNSPIN_GIVE_BACK : UNSPIN_PASS, 0);
}

#endif
