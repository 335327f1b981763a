/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * contract.h - the policy contract, version 0: the facts that a policy gets, and the decisions that it may return.
 *
 * A policy is a header of pure functions NAME_on_EVENT(facts, state): no helper, no loop over vCPUs, no allocation, no
 * floating point, no signed division. It judges one candidate; the caller (the host's BPF programs, the lab) loops over candidates,
 * carries the decision out and charges for it. Every fact has an age, or is UNKNOWN: a policy defines what it does then. All
 * policies that are switched on are called in the order of policy/steering/policies.h until one does not PASS.
 */
#ifndef UNSPIN_POLICY_CONTRACT_H
#define UNSPIN_POLICY_CONTRACT_H

#include "../abi/types.h"
#include "model/known.h"

#define UNSPIN_POLICY_CONTRACT 0

/* BPF returns no struct from a function: all of these become part of their caller. */
#define UNSPIN_PURE static inline __attribute__((always_inline))

#define UNSPIN_AGE_UNKNOWN 0xffffffffu /* the fact's value means nothing */
#define UNSPIN_AGE_MAX 0xfffffffeu     /* this old, or older: 4.29 s */

/* Something that was seen `age_ns` ago. */
struct unspin_fact {
	unspin_u32 value;
	unspin_u32 age_ns;
};

#define UNSPIN_UNKNOWN_FACT ((struct unspin_fact){0, UNSPIN_AGE_UNKNOWN})

/* Values of unspin_vcpu_facts.mode, as in enum unspin_guest_mode (abi/bpf/events.h). */
#define UNSPIN_FACT_USER 1u
#define UNSPIN_FACT_KERNEL 2u

/* Values of unspin_vcpu_facts.awaited. */
#define UNSPIN_AWAITED_BY_SELF 1u
#define UNSPIN_AWAITED_BY_SOMEBODY 2u

/* Of unspin_vcpu_facts.awaits, beside numbers of slices. */
#define UNSPIN_AWAITS_NOW 0xffu

/* What is known of one vCPU. */
struct unspin_vcpu_facts {
	struct unspin_fact critical;	/* locks asked for or held, as the guest says (abi/guest/pv_page.h) */
	struct unspin_fact mode;	/* where the guest was at its last exit */
	struct unspin_fact descheduled; /* 1: runnable, off its CPU, for so long; 0: on a CPU */
	struct unspin_fact yielded;	/* 1: gave its CPU away, so long ago; unknown: never */
	struct unspin_fact spun;	/* times it spun since its slice began */
	struct unspin_fact borrows;	/* 1: runs on time that is not its own, for so long; 0: on its own */
	struct unspin_fact near;	/* 1: ran last on the CPU that self is on, so long ago; 0: on another */
	struct unspin_fact sections; /* critical sections it is in, by eCS's counters; unknown: its guest counts none */
	/*
	 * on_yield. UNSPIN_AWAITED_BY_SELF: self waits for it, for so long: it has not run since self sent it an interrupt (ruling
	 * 32; known where a rule of candidate.h is on), or self's guest has named it (KVM_HC_SCHED_YIELD).
	 * UNSPIN_AWAITED_BY_SOMEBODY: an interrupt for which its sender may wait is pending in its APIC, since it lost its CPU or
	 * later; where that is known, and nothing more.
	 */
	struct unspin_fact awaited;
	/*
	 * Whether it waits for answers itself. on_yield: in its slice, or in its last one, it spun where a vCPU was proposed whose answer
	 * was awaited: UNSPIN_ANSWER_SLICES, or one less (steering/slice.h); 0: it did not. Of self on_slice_end: UNSPIN_AWAITS_NOW: one
	 * that waits for a CPU has not answered it.
	 */
	struct unspin_fact awaits;
};
UNSPIN_ASSERT_SIZE(struct unspin_vcpu_facts, 80);

/* Where self and the candidate stand in the scheduler's order. Virtual times wrap around; a smaller one runs first. */
struct unspin_order_facts {
	unspin_u64 self_vtime;	    /* with all that it has run up to now */
	unspin_u64 candidate_vtime; /* in the same unit, comparable with it */
	unspin_u64 average_vtime;   /* how far the candidate's queue has come */
	unspin_u64 limit_vtime;	    /* how far from that the scheduler lets a task be; below 2^63 */
	unspin_u32 runnable;	    /* tasks of the candidate's queue, the one that runs included */
	unspin_u32 same_queue;	    /* enum unspin_known: one queue serves both; unless YES, the rest means nothing */
	unspin_u32 same_group;	    /* enum unspin_known: both are in the same cgroup */
	unspin_u32 unused;
};
UNSPIN_ASSERT_SIZE(struct unspin_order_facts, 48);

struct unspin_facts {
	struct unspin_vcpu_facts self;	    /* the vCPU that asks or is asked about */
	struct unspin_vcpu_facts candidate; /* of the same VM; all unknown where there is none */
	unspin_u32 slice_ns;		    /* the scheduler's slice */
	unspin_u32 slice_left_ns;	    /* of self's slice; 0: used up */
	unspin_u32 recent_ns;		    /* what is recent: a parameter of helping.h */
	unspin_u32 threshold_ns;	    /* what is too unfair: a parameter of yield_buddy.h */
	struct unspin_order_facts order;    /* on_yield and on_call, where a policy that is on reads it */
};
UNSPIN_ASSERT_SIZE(struct unspin_facts, 224);

/* A policy's own memory of one vCPU, zero at first; no other policy reads it. */
struct unspin_policy_state {
	unspin_u32 words[2];
};
UNSPIN_ASSERT_SIZE(struct unspin_policy_state, 8);

enum unspin_action {
	UNSPIN_PASS = 0,   /* the next policy decides; when all pass, policy/steering/policies.h does */
	UNSPIN_REFUSE = 1, /* nothing is done, and no further policy is called */
	UNSPIN_DIRECT = 2, /* the candidate runs the rest of self's slice, at self's charge */
	UNSPIN_LEND = 3,   /* the same for budget_ns at most, then self continues with what is left */
	UNSPIN_GRANT = 4,  /* self continues for budget_ns at most after its slice; charged like any time */
	UNSPIN_GIVE_BACK =
		5, /* self leaves the CPU now: a borrower to its lender, otherwise to the task that is next in order */
	/*
	 * self leaves the CPU; the candidate begins a slice of its own, unless its virtual time is more than budget_ns after
	 * that of the task that would be next, self with raise_ns included. Before that, both virtual times are changed as below.
	 */
	UNSPIN_YIELD_BUDDY = 6,
	UNSPIN_EXTEND = 7, /* as GRANT, but the guest is not notified, and no policy polls it before the time is up */
};

struct unspin_decision {
	unspin_u32 action;    /* enum unspin_action */
	unspin_u32 budget_ns; /* LEND, GRANT, EXTEND: 1 or more; YIELD_BUDDY: see there; otherwise 0 */
	unspin_u32 rank;      /* on_help, DIRECT and LEND: 1 or more; otherwise 0 */
	unspin_u32 raise_ns;  /* YIELD_BUDDY: self's virtual time goes up by so much; otherwise 0 */
	unspin_u32 credit_ns; /* YIELD_BUDDY: the candidate's goes down by so much; otherwise 0 */
};
UNSPIN_ASSERT_SIZE(struct unspin_decision, 20);

/*
 * The events, and which decisions are valid there (any other is a PASS):
 *   on_yield        self spins, and KVM proposes to run the candidate instead: REFUSE, DIRECT, LEND, GIVE_BACK, YIELD_BUDDY
 *   on_help         self's guest calls for help, once for each candidate: REFUSE, DIRECT, LEND, each with a rank: the highest is
 *                   taken, of equals the one with the lowest number of a vCPU
 *   on_slice_end    self's slice is used up at a tick, and it is runnable: REFUSE, GRANT, EXTEND
 *   on_poll         self borrows (a loan or a grant) and is polled: GIVE_BACK; PASS: it continues
 *   on_call         self has begun a slice of its own, once for each sibling that waits: REFUSE, YIELD_BUDDY: that one is called
 *                   to another CPU
 *   on_slice_start  self begins a slice of its own, or has got the rest of one for good: the state is prepared; no decision
 */

/* No loan or grant lasts longer (issue of both: 1 ms; eCS section 4, ruling 22). */
#define UNSPIN_BUDGET_NS 1000000u

UNSPIN_PURE _Bool fact_known(struct unspin_fact fact)
{
	return fact.age_ns != UNSPIN_AGE_UNKNOWN;
}

/* No vCPU, or none known. By fields: BPF keeps no constant of it in memory that way. */
UNSPIN_PURE void vcpu_is_unknown(struct unspin_vcpu_facts *facts)
{
	facts->critical = UNSPIN_UNKNOWN_FACT;
	facts->mode = UNSPIN_UNKNOWN_FACT;
	facts->descheduled = UNSPIN_UNKNOWN_FACT;
	facts->yielded = UNSPIN_UNKNOWN_FACT;
	facts->spun = UNSPIN_UNKNOWN_FACT;
	facts->borrows = UNSPIN_UNKNOWN_FACT;
	facts->near = UNSPIN_UNKNOWN_FACT;
	facts->sections = UNSPIN_UNKNOWN_FACT;
	facts->awaited = UNSPIN_UNKNOWN_FACT;
	facts->awaits = UNSPIN_UNKNOWN_FACT;
}

/* No queue, or none known. */
UNSPIN_PURE void order_is_unknown(struct unspin_order_facts *order)
{
	order->self_vtime = 0;
	order->candidate_vtime = 0;
	order->average_vtime = 0;
	order->limit_vtime = 0;
	order->runnable = 0;
	order->same_queue = UNSPIN_NOT_KNOWN;
	order->same_group = UNSPIN_NOT_KNOWN;
	order->unused = 0;
}

/* Known, and that value. */
UNSPIN_PURE _Bool fact_is(struct unspin_fact fact, unspin_u32 value)
{
	return fact_known(fact) && fact.value == value;
}

/* A fact seen at `seen_ns`, as of `now_ns`; clocks that step back make it fresh. */
UNSPIN_PURE struct unspin_fact fact_seen(unspin_u32 value, unspin_u64 seen_ns, unspin_u64 now_ns)
{
	unspin_u64 age_ns = now_ns > seen_ns ? now_ns - seen_ns : 0;

	return (struct unspin_fact){value, age_ns < UNSPIN_AGE_MAX ? (unspin_u32)age_ns : UNSPIN_AGE_MAX};
}

UNSPIN_PURE struct unspin_decision unspin_decide(enum unspin_action action, unspin_u32 budget_ns)
{
	return (struct unspin_decision){action, budget_ns, 0, 0, 0};
}

#endif
