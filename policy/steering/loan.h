/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * loan.h - a spinner lends its CPU to a descheduled vCPU that waits for a lock or holds one, and gets it back at unlock.
 *
 * With FIFO locks nearly all spinning is for a *descheduled next waiter*: running any other vCPU advances nothing, and
 * each yield that is honoured deschedules one more waiter (docs/decisions/design.md#loan). So a yield is refused
 * unless the candidate's counter, raised from before it requests a lock until after unlock, is above zero. The borrower
 * is notified (abi/guest/pv_page.h, `borrowed`), gives the CPU back at unlock, and the lender continues what is left of its slice,
 * which pays for the loan. A loan is capped. The lender gets no new slice: that would give the VM more than its share.
 *
 * Unknown counter (a guest that gives no pv pages): PASS. A descheduled vCPU's counter cannot change, whatever its age.
 *
 * A vCPU that has not taken an interrupt is waited for, too: answer.h.
 */
#ifndef UNSPIN_POLICY_STEERING_LOAN_H
#define UNSPIN_POLICY_STEERING_LOAN_H

#include "answer.h"

UNSPIN_PURE struct unspin_decision loan_on_yield(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	const struct unspin_vcpu_facts *candidate = &facts->candidate;
	_Bool known = fact_known(candidate->critical);

	(void)state;
	if (known && candidate->critical.value != 0 && fact_is(candidate->descheduled, 1))
		return unspin_decide(UNSPIN_LEND, UNSPIN_BUDGET_NS);
	if (known ? answer_may_be_awaited(candidate) : answer_is_awaited(candidate))
		return answer_on_yield(facts);
	return unspin_decide(known ? UNSPIN_REFUSE : UNSPIN_PASS, 0);
}

/* A borrower that holds no lock and waits for none any more has no use for the loan. */
UNSPIN_PURE struct unspin_decision loan_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	(void)state;
	return unspin_decide(fact_is(facts->self.critical, 0) ? UNSPIN_GIVE_BACK : UNSPIN_PASS, 0);
}

#endif
