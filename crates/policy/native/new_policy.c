/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * NAME.c - a policy: which vCPU runs in place of one that spins. This one accepts KVM's proposals as `directed-yield` does,
 * except candidates that have just yielded their own CPU, and except the first TWO in a slice, since a wait may be short.
 *
 *   unspin policy test ./NAME.c                      tries it here, by NAME_test.c
 *   sudo unspin steer --dry-run --policy ./NAME.c    calls it on a live host, and carries nothing out
 *   sudo unspin steer --policy ./NAME.c              schedules by it, until Ctrl-C
 *   unspin testbed run -- unspin steer --policy ./NAME.c -- unspin vm run SCENARIO.toml
 *
 * The contract is <unspin/policy/contract.h>; in short:
 * - Four functions, each called at any time, on any CPU. They return a decision; the scheduler carries it out and charges for it.
 * - Their input is `facts`. Each fact has a value and an age in ns, or is UNKNOWN: then fact_known() and fact_is() are false.
 *   A policy without a fact that it needs returns UNSPIN_PASS.
 * - Their memory of a vCPU is `state`: two words, zero at first. No variables of your own: a decision must follow from facts
 *   and state alone, or it cannot be replayed from a log (unspin policy replay LOG --with ./NAME.c).
 * - No calls into the kernel, no loops without a bound, no floating point, no signed division: the verifier would refuse it.
 * - Yours is called first; when it passes, the other policies that are on are called, in the order of `unspin policy list`.
 *   When all pass, a yield is directed as by `directed-yield`, and nothing else happens.
 */
#include <unspin/policy/contract.h>

#define TWO 2
#define A_MOMENT_NS 100000u

/*
 * self spins, and KVM proposes to run the candidate, a vCPU of the same VM, instead. Decisions: UNSPIN_REFUSE;
 * UNSPIN_DIRECT, the candidate runs for the rest of self's slice; UNSPIN_LEND with a budget in ns (at most
 * UNSPIN_BUDGET_NS, 1 ms), it runs for that time, then self continues; UNSPIN_GIVE_BACK, if self itself runs on a loan;
 * UNSPIN_PASS. A refusal makes KVM propose the next candidate.
 */
UNSPIN_PURE struct unspin_decision NAME_on_yield(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	const struct unspin_vcpu_facts *candidate = &facts->candidate;

	/* It runs already, or that is unknown: nothing would be gained. */
	if (!fact_is(candidate->descheduled, 1))
		return unspin_decide(UNSPIN_REFUSE, 0);
	/* It has just spun itself and yielded, and would most likely spin again. */
	if (fact_is(candidate->yielded, 1) && candidate->yielded.age_ns < A_MOMENT_NS)
		return unspin_decide(UNSPIN_REFUSE, 0);
	if (state->words[0] < TWO) {
		state->words[0]++;
		return unspin_decide(UNSPIN_REFUSE, 0);
	}
	return unspin_decide(UNSPIN_DIRECT, 0);
}

/* self's slice is used up. Decisions: UNSPIN_GRANT with a budget, it runs for that time; UNSPIN_REFUSE; UNSPIN_PASS. */
UNSPIN_PURE struct unspin_decision NAME_on_slice_end(const struct unspin_facts *facts,
						     struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

/* self runs on a loan or a grant, and is polled. Decisions: UNSPIN_GIVE_BACK, it leaves its CPU; UNSPIN_PASS, it continues. */
UNSPIN_PURE struct unspin_decision NAME_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

/* self begins a slice of its own; the facts are not set here. No decision. */
UNSPIN_PURE void NAME_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	state->words[0] = 0;
}
