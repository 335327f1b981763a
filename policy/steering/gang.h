/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * gang.h - relaxed co-scheduling of a VM's vCPUs: a vCPU that begins a slice calls those of its siblings that wait to other CPUs.
 *
 * Strict co-scheduling runs all vCPUs of a VM at once or none (Ousterhout 1982; the lab's scheduler `gang`), and leaves CPUs
 * idle where they do not fit. VMware's relaxed form starts together only those that would fall behind one another, their skew,
 * by more than a threshold (VMware, "The CPU Scheduler in VMware vSphere 5.1", 2013; Sukwong and Kim, "Is co-scheduling too
 * expensive for SMP VMs?", EuroSys 2011, section 2). This is its co-start on a scheduler that orders by virtual time:
 * - a sibling is called if its slice would come soon anyway: its virtual time, its progress, is at most the skew after that
 *   of the vCPU that begins, and at most the skew after that of the task that would be next where it is called to;
 * - only a slice of another VM's vCPUs is cut for it, one that has run for a while, and none that is lent just now;
 * - every vCPU pays for what it runs, one that is cut keeps what it has not run, so a gang buys no share;
 * - there is no co-stop: siblings wait in one order of virtual time, which bounds how far one of them can lead.
 */
#ifndef UNSPIN_POLICY_STEERING_GANG_H
#define UNSPIN_POLICY_STEERING_GANG_H

#include "yield_buddy.h"

/*
 * How long a slice lasts before it may be cut; ours. A VM whose vCPUs sleep and wake often begins slices often: no CPU
 * switches for that more than 1,000 times a second.
 */
#define UNSPIN_GANG_LEAST_NS 1000000u

/* The skew, ours: two slices. A slice ends at the first tick after its end, so siblings that run one after the other differ by about one. */
UNSPIN_PURE unspin_u32 gang_skew_ns(const struct unspin_facts *facts)
{
	return facts->slice_ns < UNSPIN_AGE_MAX / 2 ? 2 * facts->slice_ns : UNSPIN_AGE_MAX;
}

/* self begins a slice, the candidate is of its VM: YIELD_BUDDY calls it to another CPU. */
UNSPIN_PURE struct unspin_decision gang_on_call(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	const struct unspin_order_facts *order = &facts->order;
	unspin_u32 skew_ns = gang_skew_ns(facts);

	(void)state;
	if (!fact_is(facts->candidate.descheduled, 1) || order->same_queue != UNSPIN_YES)
		return unspin_decide(UNSPIN_REFUSE, 0);
	if (!yield_buddy_is_followed(order->candidate_vtime, order->self_vtime, skew_ns))
		return unspin_decide(UNSPIN_REFUSE, 0);
	return unspin_decide(UNSPIN_YIELD_BUDDY, skew_ns);
}

/* Whether the slice of another VM's vCPU may be cut that has run for so long. */
UNSPIN_PURE _Bool gang_cuts(unspin_u64 ran_ns)
{
	return ran_ns >= UNSPIN_GANG_LEAST_NS;
}

#endif
