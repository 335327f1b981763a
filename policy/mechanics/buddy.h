/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * buddy.h - which task runs after a directed yield as a yield buddy (policy/steering/yield_buddy.h), or after a call for a gang.
 *
 * As on the fair class up to Linux 6.5, the yielder is passed over while another task is not too far ahead (the "skip buddy" of
 * pick_next_entity()), and otherwise continues: the scheduler mismatch of VEE'21. The yielder has been charged for what it ran;
 * whether it is runnable at all is a fact.
 */
#ifndef UNSPIN_POLICY_MECHANICS_BUDDY_H
#define UNSPIN_POLICY_MECHANICS_BUDDY_H

#include "../steering/yield_buddy.h"
#include "virtual_time.h"

enum unspin_buddy_outcome {
	UNSPIN_BUDDY_RUNS = 1,		/* the candidate begins a slice of its own */
	UNSPIN_BUDDY_OTHERS_RUN = 2,	/* the least of the tasks that wait does; the yielder is passed over */
	UNSPIN_BUDDY_IS_TOO_UNFAIR = 3, /* as if there had been no yield: the yielder continues where it is least */
};

/* Positions (virtual_time.h) when the CPU chooses. */
struct unspin_buddy_places {
	unspin_u64 candidate_ns;     /* with what it was credited */
	unspin_u64 waiting_ns;	     /* the least of the tasks that wait for this CPU but for the yielder */
	unspin_u64 yielder_ns;	     /* with what it was raised by */
	unspin_u32 yielder_runnable; /* 1: it is; 0: it sleeps, or there is none, and yielder_ns means nothing */
	unspin_u32 threshold_ns;
};
UNSPIN_ASSERT_SIZE(struct unspin_buddy_places, 32);

/* enum unspin_buddy_outcome */
UNSPIN_PURE unspin_u32 unspin_buddy_outcome(const struct unspin_buddy_places *at)
{
	unspin_u64 waiting_ns = at->waiting_ns, first_ns;

	if (unspin_before(at->candidate_ns, waiting_ns)) /* credited just now, or waits in another queue */
		waiting_ns = at->candidate_ns;
	first_ns = at->yielder_runnable && unspin_before(at->yielder_ns, waiting_ns) ? at->yielder_ns : waiting_ns;
	if (yield_buddy_is_followed(at->candidate_ns, first_ns, at->threshold_ns))
		return UNSPIN_BUDDY_RUNS;
	return yield_buddy_is_followed(waiting_ns, first_ns, at->threshold_ns) ? UNSPIN_BUDDY_OTHERS_RUN
									       : UNSPIN_BUDDY_IS_TOO_UNFAIR;
}

#endif
