/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ple_reason.h - what a pause-loop exit waited for: VEE'21, section 3.1 and Figure 5; rulings 33 and 34.
 *
 * With the guest's symbols, the function at the instruction pointer decides, as in the paper (its Table 3). Without:
 *
 * - User mode: `other`. AMD's PAUSE exits come from there too, and what user space waits for is none of the paper's reasons.
 * - The vector, where the guest's numbering is known, shows what an IPI is for: a function call is waited for, a
 *   reschedule is not (VEE'21, section 5.2).
 * - An IPI by itself proves little: a reschedule IPI may have been sent just before a lock wait; and a wait for answers need
 *   not have one: Linux sends none to a vCPU whose queue of calls is not empty (kernel/smp.c, smp_call_function_many_cond()).
 *   What distinguishes them is the location: at a function call's most exits come with an IPI of the spinner's own that it has
 *   neither halted nor left the kernel since, and most of those before the last receiver has run, for then the wait is over;
 *   at a lock's either few do, or the wait lasts long after. Such a location is a function call's (its "answers" location)
 *   with all its exits, and any other is not: function calls that no vCPU waits for are sent,
 *   too. Only where the location is not known does an open IPI with a function call's vector make one.
 * - No such IPI: a wait for another vCPU's progress, `spinlock`. What the paper's symbols call other, or an intentional delay,
 *   cannot be distinguished from it by the host.
 * - Where IPIs cannot be seen: `unknown`.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_PLE_REASON_H
#define UNSPIN_POLICY_CLASSIFY_PLE_REASON_H

#include "../../abi/bpf/events.h"

enum unspin_ple_reason {
	UNSPIN_REASON_SPINLOCK = 0,
	UNSPIN_REASON_FUNCTION_CALL = 1, /* a TLB shootdown, or any IPI with a wait (ruling 34) */
	UNSPIN_REASON_DELAY = 2,
	UNSPIN_REASON_OTHER = 3,
	UNSPIN_REASON_UNKNOWN = 4,
	UNSPIN_REASONS = 5,
};

/* What the guest's symbols show of the location. */
enum unspin_ple_symbol {
	UNSPIN_SYMBOL_NONE = 0, /* no symbols, no location, or no function there */
	UNSPIN_SYMBOL_SPINLOCK = 1,
	UNSPIN_SYMBOL_FUNCTION_CALL = 2,
	UNSPIN_SYMBOL_DELAY = 3,
	UNSPIN_SYMBOL_OTHER = 4, /* a function of another purpose */
	UNSPIN_SYMBOLS = 5,
};

/* The spinner's own last IPI, not counting one that it halted or went to user mode after, or waited elsewhere after. */
enum unspin_ple_ipi {
	UNSPIN_IPI_NOT_KNOWN = 0, /* IPIs are virtualised, or some were lost */
	UNSPIN_IPI_NONE = 1,
	UNSPIN_IPI_ANSWERED = 2, /* all its receivers have run since, or did when it was sent */
	UNSPIN_IPI_OPEN = 3,	 /* a receiver has not run since */
	UNSPIN_PLE_IPIS = 4,
};

/* What the vector of that IPI is for. */
enum unspin_ple_vector {
	UNSPIN_VECTOR_NOT_KNOWN = 0, /* the guest's numbering is not known */
	UNSPIN_VECTOR_FUNCTION_CALL = 1,
	UNSPIN_VECTOR_RESCHEDULE = 2,
	UNSPIN_VECTOR_OTHER = 3,
	UNSPIN_PLE_VECTORS = 4,
};

struct unspin_ple_reason_facts {
	unspin_u32 symbol; /* enum unspin_ple_symbol */
	unspin_u32 mode;   /* enum unspin_guest_mode */
	unspin_u32 ipi;	   /* enum unspin_ple_ipi */
	unspin_u32 vector; /* enum unspin_ple_vector */
	/* Of the exits at this location, those that unspin_may_wait_for_answers(), by UNSPIN_IPI_*; and all where it is known. */
	unspin_u64 location_open;
	unspin_u64 location_answered;
	unspin_u64 location_exits;
};
UNSPIN_ASSERT_SIZE(struct unspin_ple_reason_facts, 40);

/* Linux's vectors (arch/x86/include/asm/irq_vectors.h, 7.2): enum unspin_ple_vector. */
#define UNSPIN_LINUX_RESCHEDULE 0xfdu /* RESCHEDULE_VECTOR */

static inline unspin_u32 unspin_linux_vector(unspin_u32 vector)
{
	switch (vector) {
	case UNSPIN_LINUX_RESCHEDULE:
		return UNSPIN_VECTOR_RESCHEDULE;
	case 0xfc: /* CALL_FUNCTION_VECTOR */
	case 0xfb: /* CALL_FUNCTION_SINGLE_VECTOR */
		return UNSPIN_VECTOR_FUNCTION_CALL;
	default:
		return UNSPIN_VECTOR_OTHER;
	}
}

/* Whether the vCPU may be waiting for answers to its last IPI, an enum unspin_ple_ipi with that enum unspin_ple_vector. */
static inline _Bool unspin_may_wait_for_answers(unspin_u32 ipi, unspin_u32 vector)
{
	if (ipi != UNSPIN_IPI_OPEN && ipi != UNSPIN_IPI_ANSWERED)
		return 0;
	return vector == UNSPIN_VECTOR_NOT_KNOWN || vector == UNSPIN_VECTOR_FUNCTION_CALL;
}

/*
 * Whether most exits at the location come with an IPI, and most of those while a receiver has not run. The sums may be
 * anything: parts above the whole are no share.
 */
static inline _Bool unspin_is_answers_location(const struct unspin_ple_reason_facts *facts)
{
	unspin_u64 open = facts->location_open, answered = facts->location_answered, all = facts->location_exits;

	if (open > all || answered > all - open)
		return 0;
	return open > answered && open + answered > all - open - answered;
}

static inline unspin_u32 unspin_ple_reason_by_ipi(const struct unspin_ple_reason_facts *facts)
{
	if (unspin_is_answers_location(facts))
		return UNSPIN_REASON_FUNCTION_CALL;
	if (facts->ipi == UNSPIN_IPI_NONE || facts->vector == UNSPIN_VECTOR_RESCHEDULE)
		return UNSPIN_REASON_SPINLOCK;
	if (facts->ipi != UNSPIN_IPI_OPEN && facts->ipi != UNSPIN_IPI_ANSWERED)
		return UNSPIN_REASON_UNKNOWN;
	if (facts->location_exits != 0)
		return UNSPIN_REASON_SPINLOCK;
	return facts->ipi == UNSPIN_IPI_OPEN && facts->vector == UNSPIN_VECTOR_FUNCTION_CALL
		       ? UNSPIN_REASON_FUNCTION_CALL
		       : UNSPIN_REASON_UNKNOWN;
}

/* The reason: enum unspin_ple_reason. */
static inline unspin_u32 unspin_ple_reason(const struct unspin_ple_reason_facts *facts)
{
	switch (facts->symbol) {
	case UNSPIN_SYMBOL_SPINLOCK:
		return UNSPIN_REASON_SPINLOCK;
	case UNSPIN_SYMBOL_FUNCTION_CALL:
		return UNSPIN_REASON_FUNCTION_CALL;
	case UNSPIN_SYMBOL_DELAY:
		return UNSPIN_REASON_DELAY;
	case UNSPIN_SYMBOL_OTHER:
		return UNSPIN_REASON_OTHER;
	default:
		break;
	}
	if (facts->mode == UNSPIN_MODE_USER)
		return UNSPIN_REASON_OTHER;
	return unspin_ple_reason_by_ipi(facts);
}

#endif
