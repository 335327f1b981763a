/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * candidate_walk.h - the order in which kvm_vcpu_on_spin() considers the vCPUs of a VM, and when it ends. The caller
 * loops: it takes the next vCPU and candidate.h's verdict on it, calls yield_to(), and passes on what that returned.
 *
 * Round robin from the one after the last that was boosted, the spinner left out, until a yield_to() returns more than 0, or
 * three have returned less, or all were considered (virt/kvm/kvm_main.c, 7.2). Before it became a single loop there were two
 * passes, above the last boosted and up to it, and the second was not begun when the first had ended with a failure: so in
 * 5.2, 5.3 and what the papers built on them. The single loop remembered a wrong vCPU as boosted until 6.19 (32bd348be3fa):
 * not modelled. The second round of proposed-2026 is a walk of its own here; there it continues with the tries that are left.
 */
#ifndef UNSPIN_POLICY_STEERING_CANDIDATE_WALK_H
#define UNSPIN_POLICY_STEERING_CANDIDATE_WALK_H

#include "candidate.h"

#define UNSPIN_WALK_TRIES 3u
#define UNSPIN_WALK_NOBODY 0xffffffffu

struct unspin_walk {
	unspin_u32 vcpus; /* of the VM, numbered from 0 */
	unspin_u32 self;
	unspin_u32 next; /* the vCPU to consider next */
	unspin_u32 left; /* vCPUs not considered */
	unspin_u32 tries_left;
	unspin_u32 two_passes; /* 1: as before the single loop */
	unspin_u32 failed;     /* 1: the last yield_to() returned less than 0 */
	unspin_u32 boosted;    /* the VM's new last boosted vCPU, or UNSPIN_WALK_NOBODY: unchanged */
};
UNSPIN_ASSERT_SIZE(struct unspin_walk, 32);

/* Begins; `self` and `last_boosted` are below `vcpus`. A VM's last boosted vCPU is 0 at first. */
static inline void unspin_walk_begin(struct unspin_walk *walk, unspin_u32 rule, unspin_u32 self,
				     unspin_u32 last_boosted, unspin_u32 vcpus)
{
	walk->vcpus = vcpus;
	walk->self = self;
	walk->next = last_boosted + 1 < vcpus ? last_boosted + 1 : 0;
	walk->left = vcpus < 2 ? 0 : vcpus;
	walk->tries_left = UNSPIN_WALK_TRIES;
	walk->two_passes = rule != UNSPIN_CANDIDATES_KVM_7_2 && rule != UNSPIN_CANDIDATES_PROPOSED_2026;
	walk->failed = 0;
	walk->boosted = UNSPIN_WALK_NOBODY;
}

/* Takes one step. Returns the vCPU there, or UNSPIN_WALK_NOBODY at the end. */
static inline unspin_u32 unspin_walk_step(struct unspin_walk *walk)
{
	unspin_u32 vcpu = walk->next;

	if (walk->left == 0 || (walk->two_passes && walk->failed && vcpu == 0))
		return UNSPIN_WALK_NOBODY;
	walk->left--;
	walk->next = vcpu + 1 < walk->vcpus ? vcpu + 1 : 0;
	return vcpu;
}

/* The next vCPU to consider, or UNSPIN_WALK_NOBODY: the walk is over. */
static inline unspin_u32 unspin_walk_next(struct unspin_walk *walk)
{
	unspin_u32 vcpu = unspin_walk_step(walk);

	/* Only one of them is the spinner. */
	return vcpu == walk->self ? unspin_walk_step(walk) : vcpu;
}

/* yield_to() was called for `vcpu` and returned `result`: more than 0 done, 0 refused, less than 0 failed. */
static inline void unspin_walk_tried(struct unspin_walk *walk, unspin_u32 vcpu, int result)
{
	walk->failed = result < 0;
	if (result > 0) {
		walk->boosted = vcpu;
		walk->left = 0;
	}
	if (result < 0 && --walk->tries_left == 0)
		walk->left = 0;
}

#endif
