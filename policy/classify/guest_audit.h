/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * guest_audit.h - which of a guest's claims no honest guest makes, from counts of one VM since the scheduler was attached.
 *
 * It decides nothing: no policy reads it, and what a claim can gain is bounded elsewhere (a slice is never prolonged but for one
 * grant, its time is charged). It names VMs to inspect. Each limit needs so many events first that a guest which starts,
 * ends or loses a race does not reach it; shares are in hundredths, in integers.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_GUEST_AUDIT_H
#define UNSPIN_POLICY_CLASSIFY_GUEST_AUDIT_H

#include "../../abi/bpf/scheduler.h"

#define UNSPIN_AUDIT_BOUNDARIES 64u /* slice ends before a share of them means anything */
#define UNSPIN_AUDIT_BORROWED 16u   /* loans and grants before the same of these */
#define UNSPIN_AUDIT_EVENTS 64u	    /* of what an honest guest does now and then only, when it starts or ends */
#define UNSPIN_AUDIT_PERCENT 95u
/* Calls without effect for each that had one. A guest gives back at most once too often for each loan. */
#define UNSPIN_AUDIT_IDLE_CALLS 8u
/*
 * Interrupts to a vCPU that has not run since the last one of the same kind. A vCPU that waits for answers sends none before it has
 * them, and Linux none while the one before is pending (resched_curr(), __smp_call_single_queue()). What is sent without
 * asking, and seldom, is left out by the rate: CPU time for each of them.
 */
#define UNSPIN_AUDIT_UNANSWERED 1000u
#define UNSPIN_AUDIT_UNANSWERED_EVERY_NS 200000u

enum unspin_audit_finding {
	UNSPIN_AUDIT_CLAIMS = 1,    /* in a critical section at every slice end, and never out of one in time */
	UNSPIN_AUDIT_PAGE = 2,	    /* its pv page has gone, or has no magic */
	UNSPIN_AUDIT_ADDRESSES = 4, /* registers what is no page of its memory */
	UNSPIN_AUDIT_CALLS = 8,	    /* gives back what it never had */
	UNSPIN_AUDIT_FLOODS = 16,   /* interrupts its own vCPUs again and again, whether they answer or not */
};

static inline _Bool unspin_most_of(unspin_u64 part, unspin_u64 all)
{
	return part * 100 >= all * UNSPIN_AUDIT_PERCENT;
}

/* Bits of enum unspin_audit_finding; 0: no finding. */
static inline unspin_u32 unspin_audit_guest(const struct unspin_guest_audit *counts)
{
	unspin_u32 said = 0;

	/* A lock waiter is critical at every slice end, too: but it gets out of it when it runs. */
	if (counts->boundaries >= UNSPIN_AUDIT_BOUNDARIES && unspin_most_of(counts->claimed, counts->boundaries) &&
	    counts->borrowed >= UNSPIN_AUDIT_BORROWED && unspin_most_of(counts->overrun, counts->borrowed))
		said |= UNSPIN_AUDIT_CLAIMS;
	if (counts->page_failures >= UNSPIN_AUDIT_EVENTS)
		said |= UNSPIN_AUDIT_PAGE;
	if (counts->bad_addresses >= UNSPIN_AUDIT_EVENTS)
		said |= UNSPIN_AUDIT_ADDRESSES;
	if (counts->idle_calls >= UNSPIN_AUDIT_EVENTS &&
	    counts->idle_calls > UNSPIN_AUDIT_IDLE_CALLS * counts->borrowed)
		said |= UNSPIN_AUDIT_CALLS;
	if (counts->unanswered >= UNSPIN_AUDIT_UNANSWERED &&
	    counts->ran_ns / counts->unanswered < UNSPIN_AUDIT_UNANSWERED_EVERY_NS)
		said |= UNSPIN_AUDIT_FLOODS;
	return said;
}

#endif
