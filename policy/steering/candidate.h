/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * candidate.h - the vCPU that a spinning vCPU's host thread proposes to the scheduler instead: kvm_vcpu_on_spin(), then and now, and
 * VEE'21's strict boost (section 4.2) with its variants. The order of asking is candidate_walk.h.
 *
 * Rulings 31 and 32. In the paper's words a *resource waiter* was preempted, a *lock waiter* left its pCPU for a pause-loop
 * exit, an *IPI receiver* was halted and has been sent an interrupt. In KVM's, all three are `ready`.
 *
 *   kvm-5.2          up to 5.2: preempted vCPUs only; while the spinner is in kernel mode, those preempted there (before
 *                    199b5763d329, August 2017, any: as with a spinner whose mode is not known)
 *   kvm-5.3          5.3 to 5.12: halted ones with an event pending as well, exempt from that filter
 *   kvm-7.2          5.13 and later: the filter also lets those pass that have an interrupt pending in the APIC's hardware
 *                    ("Boost vCPU candidate in user mode which is delivering interrupt", April 2021)
 *   strict           kvm-5.3, but receivers of the spinner's IPI pass the filter, and a halted one without is passed over once
 *   usermode         kvm-5.3 without the filter
 *   avoid-overboost  kvm-5.3, but halted vCPUs to which the spinner sent nothing are left out
 *   proposed-2026    Li's third version of June 2026 (not merged), patches 9 and 10: receivers of the last 50 ms first of all;
 *                    in its second round every vCPU that was preempted
 *
 * A lock waiter is passed over once and taken the next time, by any spinner (kvm_vcpu_eligible_for_directed_yield()): the
 * paper's two rounds are such marks on vCPUs, not two loops in one exit. So is strict boost's round for halted ones, by spinner.
 *
 * Ruling 32 reads as if an outstanding IPI left its receivers as the only candidates. The paper says that it *adds* them
 * (section 4.2), the authors' patch does, and its hackbench result (section 5.2) follows from that: so here. The narrow
 * reading is UNSPIN_CANDIDATES_RECEIVERS_ONLY. Their patch has 64 vCPUs and physical destinations; here any.
 *
 * Unknown: a vCPU whose state is not known is not taken; otherwise only what is known excludes one, and only a
 * receiver that is known is one.
 */
#ifndef UNSPIN_POLICY_STEERING_CANDIDATE_H
#define UNSPIN_POLICY_STEERING_CANDIDATE_H

#include "../contract.h"
#include "../model/known.h"
#include "../classify/ple_outcome.h"
#include "../classify/ple_reason.h"

enum unspin_candidate_rule {
	UNSPIN_CANDIDATES_KVM_5_2 = 0,
	UNSPIN_CANDIDATES_KVM_5_3 = 1,
	UNSPIN_CANDIDATES_KVM_7_2 = 2,
	UNSPIN_CANDIDATES_STRICT = 3,
	UNSPIN_CANDIDATES_USERMODE = 4,
	UNSPIN_CANDIDATES_AVOID_OVERBOOST = 5,
	UNSPIN_CANDIDATES_PROPOSED_2026 = 6,
	UNSPIN_CANDIDATE_RULES = 7,
};

/* VEE'21, section 5.2, "future work": a vCPU that was sent a reschedule, which no vCPU waits for, is no receiver. */
#define UNSPIN_CANDIDATES_IGNORE_RESCHEDULE 1u
/* strict: while the spinner's IPI is outstanding, its receivers only. */
#define UNSPIN_CANDIDATES_RECEIVERS_ONLY 2u

/* Li 2026, ipi_window_ns: an IPI that long ago is not waited for any more. */
#define UNSPIN_CANDIDATES_RECENT_NS 50000000u

/* The spinner, and the rule by which another vCPU is chosen. */
struct unspin_spinner {
	unspin_u32 rule;    /* enum unspin_candidate_rule */
	unspin_u32 options; /* UNSPIN_CANDIDATES_*, 0 for none */
	unspin_u32 mode;    /* enum unspin_guest_mode, at the exit */
	unspin_u32 awaits;  /* enum unspin_known: its IPI is outstanding, a receiver has not run since */
	unspin_u32 round;   /* 1; 2 in the second of proposed-2026 */
};
UNSPIN_ASSERT_SIZE(struct unspin_spinner, 20);

/* Another vCPU of the VM, at that moment. */
struct unspin_yield_facts {
	unspin_u32 state; /* enum unspin_ple_candidate_state */
	unspin_u32 mode;  /* enum unspin_guest_mode: where it was when it left its pCPU */
	/* enum unspin_known: an event that lets it run (vcpu_dy_runnable()). */
	unspin_u32 pending;
	/* enum unspin_known: an interrupt in the virtual APIC of the hardware; NO without one (kvm_arch_dy_has_pending_interrupt()). */
	unspin_u32 posted;
	unspin_u32 spins; /* 1: it left its pCPU in kvm_vcpu_on_spin(): a lock waiter (in_spin_loop) */
	unspin_u32
		eligible; /* its mark: 1: a lock waiter that was passed over (dy_eligible); 0 again when its exit is over */
	/* enum unspin_known: the spinner's IPI went to it while it was off its pCPU, and it has not run since (ruling 32). */
	unspin_u32 receiver;
	unspin_u32 vector; /* enum unspin_ple_vector: of that IPI */
	unspin_u32 passed; /* its mark for this spinner: 1: passed over while halted, and not run since */
	unspin_u32
		ipi_age_ns; /* since the spinner's last IPI to it, which it has not answered; or UNSPIN_AGE_UNKNOWN */
};
UNSPIN_ASSERT_SIZE(struct unspin_yield_facts, 40);

/* The verdict: a sum of these. */
#define UNSPIN_CANDIDATE_TAKE 1u   /* call yield_to() for it */
#define UNSPIN_CANDIDATE_TOGGLE 2u /* invert its `eligible` */
#define UNSPIN_CANDIDATE_MARK 4u   /* set its `passed` for this spinner */

static inline _Bool unspin_is_receiver(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts)
{
	if (spinner->options & UNSPIN_CANDIDATES_IGNORE_RESCHEDULE && facts->vector == UNSPIN_VECTOR_RESCHEDULE)
		return 0;
	return facts->receiver == UNSPIN_YES;
}

/* Whether yield_to_kernel_mode speaks against a preempted vCPU. */
static inline _Bool unspin_is_filtered(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts)
{
	return spinner->mode == UNSPIN_MODE_KERNEL && facts->mode == UNSPIN_MODE_USER;
}

/* A preempted vCPU: whether the rule lets it pass. */
static inline _Bool unspin_preempted_passes(const struct unspin_spinner *spinner,
					    const struct unspin_yield_facts *facts)
{
	switch (spinner->rule) {
	case UNSPIN_CANDIDATES_KVM_7_2:
		return !unspin_is_filtered(spinner, facts) || facts->posted == UNSPIN_YES;
	case UNSPIN_CANDIDATES_STRICT:
		if (spinner->options & UNSPIN_CANDIDATES_RECEIVERS_ONLY && spinner->awaits == UNSPIN_YES)
			return unspin_is_receiver(spinner, facts);
		return !unspin_is_filtered(spinner, facts) || unspin_is_receiver(spinner, facts);
	case UNSPIN_CANDIDATES_USERMODE:
		return 1;
	default:
		return !unspin_is_filtered(spinner, facts);
	}
}

/* A halted vCPU that was woken and has not run since: whether the rule lets it pass. */
static inline _Bool unspin_woken_passes(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts)
{
	if (facts->pending == UNSPIN_NO)
		return 0;
	switch (spinner->rule) {
	case UNSPIN_CANDIDATES_KVM_5_2:
		return 0;
	case UNSPIN_CANDIDATES_STRICT:
		if (spinner->options & UNSPIN_CANDIDATES_RECEIVERS_ONLY && spinner->awaits == UNSPIN_YES)
			return unspin_is_receiver(spinner, facts);
		return facts->passed || unspin_is_receiver(spinner, facts);
	case UNSPIN_CANDIDATES_AVOID_OVERBOOST:
		return unspin_is_receiver(spinner, facts);
	default:
		return 1;
	}
}

/* proposed-2026: kvm_vcpu_is_good_yield_candidate(). */
static inline _Bool unspin_proposed_passes(const struct unspin_spinner *spinner, const struct unspin_yield_facts *facts)
{
	_Bool preempted = facts->state == UNSPIN_CANDIDATE_PREEMPTED;

	if (!preempted && facts->pending == UNSPIN_NO)
		return 0;
	if (spinner->round > 1)
		return preempted;
	/* Unknown is the oldest age of all. */
	if (unspin_is_receiver(spinner, facts) && facts->ipi_age_ns <= UNSPIN_CANDIDATES_RECENT_NS)
		return 1;
	return facts->posted == UNSPIN_YES || (preempted && !unspin_is_filtered(spinner, facts));
}

/* Whether all but the lock waiter's slice speaks for it. */
static inline _Bool unspin_candidate_passes(const struct unspin_spinner *spinner,
					    const struct unspin_yield_facts *facts)
{
	if (facts->state != UNSPIN_CANDIDATE_PREEMPTED && facts->state != UNSPIN_CANDIDATE_WOKEN)
		return 0;
	if (spinner->rule == UNSPIN_CANDIDATES_PROPOSED_2026)
		return unspin_proposed_passes(spinner, facts);
	if (facts->state == UNSPIN_CANDIDATE_PREEMPTED)
		return unspin_preempted_passes(spinner, facts);
	return unspin_woken_passes(spinner, facts);
}

/* The verdict on one candidate: UNSPIN_CANDIDATE_*, 0: passed over, and nothing to be kept. */
static inline unspin_u32 unspin_candidate_verdict(const struct unspin_spinner *spinner,
						  const struct unspin_yield_facts *facts)
{
	if (!unspin_candidate_passes(spinner, facts)) {
		_Bool marks = spinner->rule == UNSPIN_CANDIDATES_STRICT && facts->state == UNSPIN_CANDIDATE_WOKEN;

		return marks && !facts->passed ? UNSPIN_CANDIDATE_MARK : 0;
	}
	if (!facts->spins)
		return UNSPIN_CANDIDATE_TAKE;
	return facts->eligible ? UNSPIN_CANDIDATE_TAKE | UNSPIN_CANDIDATE_TOGGLE : UNSPIN_CANDIDATE_TOGGLE;
}

#endif
