/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * answer.h - a spinner waits for a vCPU that has not answered its interrupt.
 *
 * A TLB shootdown, or a function call to other CPUs, ends when every receiver has taken the interrupt (VEE'21, section 4.2: lost
 * opportunity). Each needs microseconds of its own, wherever it was stopped: in the kernel, in user mode, or beside a lock. Were
 * the rest of the sender's slice passed on to a receiver for good, the sender would pay for what that does besides, and wait for a
 * round of the queue at each call (docs/decisions/scheduler.md#answers). So a receiver begins a slice of its own, or is lent to. A
 * sender that uses locks, too, has no long slices meanwhile: slice.h.
 *
 * Who waits for whom is known only where the host follows each interrupt. That one is pending is seen in the receiver's APIC, by
 * whomever it was sent: there the same is done instead of a refusal, or of passing a slice on for good.
 */
#ifndef UNSPIN_POLICY_STEERING_ANSWER_H
#define UNSPIN_POLICY_STEERING_ANSWER_H

#include "yield_buddy.h"

/* How long a receiver is lent to. Ours: about what a sender takes to reach 80 vCPUs (93 us, docs/facts.md#numbers). */
#define UNSPIN_ANSWER_NS 100000u

/* Whether self waits for that very one, which does not run. */
UNSPIN_PURE _Bool answer_is_awaited(const struct unspin_vcpu_facts *candidate)
{
	return fact_is(candidate->awaited, UNSPIN_AWAITED_BY_SELF) && fact_is(candidate->descheduled, 1);
}

/* Whether somebody may: self, which spins, or a vCPU that will spin when it runs. */
UNSPIN_PURE _Bool answer_may_be_awaited(const struct unspin_vcpu_facts *candidate)
{
	return fact_known(candidate->awaited) && candidate->awaited.value != 0 && fact_is(candidate->descheduled, 1);
}

/* Whether that vCPU waits for answers in its slice, or did in its last. */
UNSPIN_PURE _Bool answers_are_awaited_by(const struct unspin_vcpu_facts *vcpu)
{
	return fact_known(vcpu->awaits) && vcpu->awaits.value != 0;
}

/*
 * What is done then. A sender continues soonest when the receiver is lent to, at the price of two switches. A receiver that waits for
 * answers itself would spin next: it begins a slice of its own, for which it pays, and the sender keeps its place in the queue.
 */
UNSPIN_PURE struct unspin_decision answer_on_yield(const struct unspin_facts *facts)
{
	if (answers_are_awaited_by(&facts->candidate))
		return unspin_decide(UNSPIN_YIELD_BUDDY, facts->threshold_ns);
	return unspin_decide(UNSPIN_LEND, UNSPIN_ANSWER_NS);
}

/* Whether that is a loan for a lock, and not for an answer. */
UNSPIN_PURE _Bool unspin_is_lock_loan(unspin_u32 action, unspin_u32 budget_ns)
{
	return action == UNSPIN_LEND && budget_ns > UNSPIN_ANSWER_NS;
}

#endif
