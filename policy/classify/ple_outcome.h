/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ple_outcome.h - what became of one pause-loop exit: VEE'21, section 3 and Figure 6, as ruling 28 orders it.
 *
 * The caller goes through the other vCPUs of the spinner's VM as they were when KVM searched for one to boost, and adds
 * each to the facts; then it takes the outcome. Which vCPUs KVM passes over: kvm_vcpu_on_spin(), Linux 7.2,
 * virt/kvm/kvm_main.c. No host sees all that KVM saw: whether a vCPU that spins itself was eligible (`dy_eligible`
 * changes at every test), whether the walk ended after three failures before it came to a vCPU, and whether a halted
 * vCPU's wake-up was complete. An exit without a boost for such a reason is LOST_OTHER.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_PLE_OUTCOME_H
#define UNSPIN_POLICY_CLASSIFY_PLE_OUTCOME_H

#include "../../abi/bpf/events.h"
#include "../model/known.h"

/* Each exit has exactly one: the first that holds. */
enum unspin_ple_outcome {
	UNSPIN_PLE_NO_CANDIDATE = 0,	 /* no other vCPU of the VM is descheduled and can be woken */
	UNSPIN_PLE_LOST_OPPORTUNITY = 1, /* none boosted, a receiver of the spinner's IPI passed over in user mode */
	UNSPIN_PLE_LOST_OTHER = 2,	 /* none boosted: passed over for another reason, or the yield failed */
	UNSPIN_PLE_MISMATCH = 3,	 /* one boosted, and the spinner runs again before it */
	UNSPIN_PLE_OVERBOOST = 4,	 /* the boosted one was halted, and the spinner had sent it no IPI */
	UNSPIN_PLE_SUCCESS = 5,		 /* another vCPU was boosted and ran. It need not be the one waited for. */
	UNSPIN_PLE_UNKNOWN = 6,		 /* a fact that decides is not known */
	UNSPIN_PLE_OUTCOMES = 7,
};

/* Another vCPU of the VM, when KVM considered it. */
enum unspin_ple_candidate_state {
	UNSPIN_CANDIDATE_UNKNOWN = 0,
	UNSPIN_CANDIDATE_RUNNING = 1,	/* on a pCPU */
	UNSPIN_CANDIDATE_PREEMPTED = 2, /* runnable: it was preempted, or it yielded (KVM: ready and preempted) */
	UNSPIN_CANDIDATE_WOKEN = 3,	/* it was halted, was woken, and has not run since (KVM: ready) */
	UNSPIN_CANDIDATE_HALTED = 4,	/* asleep, and nothing has woken it */
	UNSPIN_CANDIDATE_STATES = 5,
};

struct unspin_ple_candidate {
	unspin_u32 state; /* enum unspin_ple_candidate_state */
	unspin_u32 mode;  /* enum unspin_guest_mode: where it was when it left its pCPU */
	/* enum unspin_known: the spinner's IPI went to it while it was off its pCPU, and it has not run since (ruling 32). */
	unspin_u32 receiver;
	unspin_u32 tried; /* enum unspin_known: yield_to() was called for it */
};

/* All of them enum unspin_known. */
struct unspin_ple_facts {
	unspin_u32 candidate;	    /* some other vCPU is descheduled and can be woken */
	unspin_u32 boosted;	    /* yield_to() returned more than 0 */
	unspin_u32 receiver_passed; /* a receiver of the spinner's IPI was passed over for being in user mode */
	/* The rest is about the boosted vCPU, and read only when there is one. */
	unspin_u32 spinner_first;   /* the spinner ran again before it */
	unspin_u32 target_halted;   /* it was halted, or had been and not run since */
	unspin_u32 target_receiver; /* as unspin_ple_candidate.receiver */
};
UNSPIN_ASSERT_SIZE(struct unspin_ple_facts, 24);

/* Whether that vCPU is descheduled and can be woken: enum unspin_known. KVM's `ready` (kvm_sched_out, kvm_vcpu_wake_up). */
static inline unspin_u32 unspin_ple_is_candidate(const struct unspin_ple_candidate *candidate)
{
	switch (candidate->state) {
	case UNSPIN_CANDIDATE_PREEMPTED:
	case UNSPIN_CANDIDATE_WOKEN:
		return UNSPIN_YES;
	case UNSPIN_CANDIDATE_RUNNING:
	case UNSPIN_CANDIDATE_HALTED:
		return UNSPIN_NO;
	default:
		return UNSPIN_NOT_KNOWN;
	}
}

/* Whether that vCPU is halted or was when it was woken: enum unspin_known. */
static inline unspin_u32 unspin_ple_is_halted(const struct unspin_ple_candidate *candidate)
{
	if (candidate->state >= UNSPIN_CANDIDATE_STATES || candidate->state == UNSPIN_CANDIDATE_UNKNOWN)
		return UNSPIN_NOT_KNOWN;
	return candidate->state >= UNSPIN_CANDIDATE_WOKEN ? UNSPIN_YES : UNSPIN_NO;
}

/* Whether a guest was in that mode: enum unspin_known. */
static inline unspin_u32 unspin_mode_is(unspin_u32 mode, unspin_u32 wanted)
{
	if (mode != UNSPIN_MODE_USER && mode != UNSPIN_MODE_KERNEL)
		return UNSPIN_NOT_KNOWN;
	return mode == wanted ? UNSPIN_YES : UNSPIN_NO;
}

/*
 * Whether KVM passed that vCPU over for being in user mode although the spinner's IPI waits for it: enum unspin_known.
 * The filter holds for preempted vCPUs only, and only while the spinner is in kernel mode (yield_to_kernel_mode).
 */
static inline unspin_u32 unspin_ple_is_passed(const struct unspin_ple_candidate *candidate, unspin_u32 spinner_mode)
{
	unspin_u32 preempted = UNSPIN_NOT_KNOWN, filtered;

	if (candidate->state != UNSPIN_CANDIDATE_UNKNOWN)
		preempted = candidate->state == UNSPIN_CANDIDATE_PREEMPTED ? UNSPIN_YES : UNSPIN_NO;
	filtered = unspin_known_and(unspin_mode_is(candidate->mode, UNSPIN_MODE_USER),
				    unspin_mode_is(spinner_mode, UNSPIN_MODE_KERNEL));
	return unspin_known_and(unspin_known_and(preempted, filtered),
				unspin_known_and(candidate->receiver, unspin_known_not(candidate->tried)));
}

/* Adds another vCPU to the facts, which began as zeroes: its order does not matter. */
static inline void unspin_ple_add_candidate(struct unspin_ple_facts *facts,
					    const struct unspin_ple_candidate *candidate, unspin_u32 spinner_mode)
{
	facts->candidate = unspin_known_or(facts->candidate, unspin_ple_is_candidate(candidate));
	facts->receiver_passed = unspin_known_or(facts->receiver_passed, unspin_ple_is_passed(candidate, spinner_mode));
}

/*
 * The outcome: enum unspin_ple_outcome. Known exactly when every completion of the unknown facts gives the same one.
 * A boost proves that there was a candidate, whatever `candidate` is: KVM saw it at the moment itself.
 */
static inline unspin_u32 unspin_ple_outcome(const struct unspin_ple_facts *facts)
{
	unspin_u32 overboost;

	if (facts->boosted == UNSPIN_NO) {
		if (facts->candidate == UNSPIN_NO)
			return UNSPIN_PLE_NO_CANDIDATE;
		if (facts->candidate != UNSPIN_YES)
			return UNSPIN_PLE_UNKNOWN;
		if (facts->receiver_passed == UNSPIN_YES)
			return UNSPIN_PLE_LOST_OPPORTUNITY;
		return facts->receiver_passed == UNSPIN_NO ? UNSPIN_PLE_LOST_OTHER : UNSPIN_PLE_UNKNOWN;
	}
	if (facts->boosted != UNSPIN_YES)
		return UNSPIN_PLE_UNKNOWN;
	if (facts->spinner_first == UNSPIN_YES)
		return UNSPIN_PLE_MISMATCH;
	if (facts->spinner_first != UNSPIN_NO)
		return UNSPIN_PLE_UNKNOWN;
	overboost = unspin_known_and(facts->target_halted, unspin_known_not(facts->target_receiver));
	if (overboost == UNSPIN_YES)
		return UNSPIN_PLE_OVERBOOST;
	return overboost == UNSPIN_NO ? UNSPIN_PLE_SUCCESS : UNSPIN_PLE_UNKNOWN;
}

#endif
