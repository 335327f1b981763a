/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * conduct.h - which of a guest's claims no honest guest makes, from counts of one VM since the scheduler was attached.
 *
 * It judges nobody: no policy asks it, and what a claim can gain is bounded elsewhere (a turn is never prolonged but for one
 * grant, its time is charged). It says whom to look at. Each limit wants so many events first that a guest which starts,
 * ends or loses a race does not reach it; shares are in hundredths, in integers.
 */
#ifndef UNSPIN_POLICY_CONDUCT_H
#define UNSPIN_POLICY_CONDUCT_H

#include "../abi/steer.h"

#define UNSPIN_CONDUCT_BOUNDARIES 64u /* slice ends before a share of them says anything */
#define UNSPIN_CONDUCT_BORROWED 16u   /* loans and grants before the same of these */
#define UNSPIN_CONDUCT_EVENTS 64u     /* of what an honest guest does now and then only, when it starts or ends */
#define UNSPIN_CONDUCT_PERCENT 95u
/* Calls without effect for each that had one. A guest gives back at most once too often for each loan. */
#define UNSPIN_CONDUCT_IDLE_CALLS 8u
/*
 * Interrupts to a vCPU that has not run since the last one of the same kind. Whoever waits for answers sends none before it has
 * them, and Linux none while the one before is pending (resched_curr(), __smp_call_single_queue()). What is sent without
 * asking, and seldom, is left out by the rate: CPU time for each of them.
 */
#define UNSPIN_CONDUCT_UNANSWERED 1000u
#define UNSPIN_CONDUCT_UNANSWERED_EVERY_NS 200000u

enum unspin_conduct {
	UNSPIN_CONDUCT_CLAIMS = 1,    /* in a critical section at every slice end, and never out of one in time */
	UNSPIN_CONDUCT_PAGE = 2,      /* its hint page has gone, or has no magic */
	UNSPIN_CONDUCT_ADDRESSES = 4, /* registers what is no page of its memory */
	UNSPIN_CONDUCT_CALLS = 8,     /* gives back what it never had */
	UNSPIN_CONDUCT_FLOODS = 16,   /* interrupts its own vCPUs again and again, whether they answer or not */
};

static inline _Bool unspin_most_of(unspin_u64 part, unspin_u64 all)
{
	return part * 100 >= all * UNSPIN_CONDUCT_PERCENT;
}

/* Bits of enum unspin_conduct; 0: nothing to say. */
static inline unspin_u32 unspin_conduct_of(const struct unspin_steer_conduct *counts)
{
	unspin_u32 said = 0;

	/* Who waits for a lock is critical at every slice end, too: but it gets out of it when it is let run. */
	if (counts->boundaries >= UNSPIN_CONDUCT_BOUNDARIES && unspin_most_of(counts->claimed, counts->boundaries) &&
	    counts->borrowed >= UNSPIN_CONDUCT_BORROWED && unspin_most_of(counts->overrun, counts->borrowed))
		said |= UNSPIN_CONDUCT_CLAIMS;
	if (counts->page_failures >= UNSPIN_CONDUCT_EVENTS)
		said |= UNSPIN_CONDUCT_PAGE;
	if (counts->bad_addresses >= UNSPIN_CONDUCT_EVENTS)
		said |= UNSPIN_CONDUCT_ADDRESSES;
	if (counts->idle_calls >= UNSPIN_CONDUCT_EVENTS &&
	    counts->idle_calls > UNSPIN_CONDUCT_IDLE_CALLS * counts->borrowed)
		said |= UNSPIN_CONDUCT_CALLS;
	if (counts->unanswered >= UNSPIN_CONDUCT_UNANSWERED &&
	    counts->ran_ns / counts->unanswered < UNSPIN_CONDUCT_UNANSWERED_EVERY_NS)
		said |= UNSPIN_CONDUCT_FLOODS;
	return said;
}

#endif
