/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * directed_yield.h - KVM's request is honoured: the candidate that kvm_vcpu_on_spin() proposes runs.
 *
 * The candidate runs on what is left of the yielder's slice, and the yielder pays for it, so that yielding buys a VM no
 * share: a slice lasts as long whichever of the VM's vCPUs runs in it. Source: virt/kvm/kvm_main.c, kvm_vcpu_on_spin() and
 * kernel/sched/syscalls.c, yield_to(), Linux 7.2; on the fair class the same is a yield buddy only (docs/facts.md#yield-to).
 */
#ifndef UNSPIN_POLICY_STEERING_DIRECTED_YIELD_H
#define UNSPIN_POLICY_STEERING_DIRECTED_YIELD_H

#include "../contract.h"

UNSPIN_PURE struct unspin_decision directed_yield_on_yield(const struct unspin_facts *facts,
							   struct unspin_policy_state *state)
{
	(void)state;
	if (!fact_is(facts->candidate.descheduled, 1))
		return unspin_decide(UNSPIN_REFUSE, 0);
	return unspin_decide(UNSPIN_DIRECT, 0);
}

#endif
