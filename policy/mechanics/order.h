/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * order.h - how a task that spins and the one that may run instead stand in their queue: the facts of struct unspin_order_facts
 * (policy/contract.h), in three parts, since the host gathers only those that a policy reads.
 *
 * Callable from anywhere; a task that runs elsewhere may be read while it changes, which makes a fact late and no more.
 */
#ifndef UNSPIN_POLICY_MECHANICS_ORDER_H
#define UNSPIN_POLICY_MECHANICS_ORDER_H

#include "virtual_time.h"

/* One of the two tasks. */
struct unspin_order_place {
	unspin_u64 vtime_ns; /* as of its last charge */
	unspin_u64 weight;   /* effective (weights.h); 1 or more */
	unspin_u32 queue;    /* a number: whose clock vtime_ns goes by */
	unspin_u32 group;    /* a number */
};
UNSPIN_ASSERT_SIZE(struct unspin_order_place, 24);

/* The candidate's virtual time, and whether both are of one queue; `waits`: the candidate waits in its queue. */
UNSPIN_PURE void unspin_order_of_candidate(struct unspin_order_facts *order, const struct unspin_order_place *self,
					   const struct unspin_order_place *candidate, _Bool waits)
{
	order->candidate_vtime = candidate->vtime_ns;
	order->same_queue = waits && self->queue == candidate->queue ? UNSPIN_YES : UNSPIN_NO;
}

/* The virtual time of self with what it has run, or is charged for, since its last charge; whether both are of one group. */
UNSPIN_PURE void unspin_order_of_self(struct unspin_order_facts *order, const struct unspin_order_place *self,
				      const struct unspin_order_place *candidate, unspin_u64 uncharged_ns)
{
	order->self_vtime = self->vtime_ns + unspin_weighted(self->weight, uncharged_ns);
	order->same_group = self->group == candidate->group ? UNSPIN_YES : UNSPIN_NO;
}

/* The candidate's queue: its clock, how far from it the candidate may be, and how many are runnable: those that wait, and self. */
UNSPIN_PURE void unspin_order_of_queue(struct unspin_order_facts *order, const struct unspin_order_place *candidate,
				       unspin_u64 clock_ns, unspin_u32 waiting, unspin_u64 slice_ns)
{
	order->average_vtime = clock_ns;
	order->limit_vtime = unspin_reach(candidate->weight, slice_ns);
	order->runnable = waiting + 1;
}

#endif
