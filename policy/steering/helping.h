/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * helping.h - Friebel 2008's helping locks: a guest signals that a vCPU waits unusually long, the host runs another of its vCPUs instead.
 *
 * The hypercall (abi/guest/pv_page.h) is anonymous (ruling 2); the host chooses among the descheduled vCPUs of the same VM, with or
 * without a pause-loop exit and whether KVM found a candidate or not. Ruling 3: *good* was in kernel mode when it left its
 * CPU, *neutral* in user mode, *bad* gave its CPU away recently: it waits, too, and is chosen last. A mode that is not known
 * (Intel, or not seen yet) is neutral: it may hold a lock, and no fact shows it.
 *
 * The order inside a class is ours: longest off its CPU first, for it is the next of a first-come lock if any is, and
 * the cache-near one of two that left in the same microsecond. The vCPU that is helped runs on the rest of the caller's slice, which
 * is charged: a call gains no share. With `loan` or `loan-cpl` on it is lent to instead (policy/steering/policies.h).
 */
#ifndef UNSPIN_POLICY_STEERING_HELPING_H
#define UNSPIN_POLICY_STEERING_HELPING_H

#include "../contract.h"

/*
 * What "yielded recently" means by default; helping=TIME sets it. As long as the longest loan: until then the vCPU that it gave
 * its CPU to may still run on it. From 0 to 4 ms it hardly matters (swept in benchmarks/matrix). Bounds: 0 (no vCPU is bad) to 1 s.
 */
#define UNSPIN_RECENT_NS 1000000u
#define UNSPIN_RECENT_MAX_NS 1000000000u

enum unspin_help_class {
	UNSPIN_HELP_BAD = 1,
	UNSPIN_HELP_NEUTRAL = 2,
	UNSPIN_HELP_GOOD = 3,
};

/* A rank: class, then microseconds off its CPU, then nearness. An age of 2^32 ns is below 2^23 us. */
#define UNSPIN_HELP_CLASS_SHIFT 24u
#define UNSPIN_HELP_AGE_SHIFT 1u

UNSPIN_PURE enum unspin_help_class helping_class(const struct unspin_facts *facts)
{
	const struct unspin_vcpu_facts *candidate = &facts->candidate;

	if (fact_is(candidate->yielded, 1) && candidate->yielded.age_ns < facts->recent_ns)
		return UNSPIN_HELP_BAD;
	return fact_is(candidate->mode, UNSPIN_FACT_KERNEL) ? UNSPIN_HELP_GOOD : UNSPIN_HELP_NEUTRAL;
}

UNSPIN_PURE struct unspin_decision helping_on_help(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	struct unspin_decision decision = unspin_decide(UNSPIN_DIRECT, 0);

	(void)state;
	if (!fact_is(facts->candidate.descheduled, 1))
		return unspin_decide(UNSPIN_REFUSE, 0);
	decision.rank = (unspin_u32)helping_class(facts) << UNSPIN_HELP_CLASS_SHIFT |
			facts->candidate.descheduled.age_ns / 1000u << UNSPIN_HELP_AGE_SHIFT |
			(unspin_u32)fact_is(facts->candidate.near, 1);
	return decision;
}

#endif
