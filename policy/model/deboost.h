/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * deboost.h - VEE'21's debooster (section 4.1): a spinner that asks for another vCPU must not be the one that runs next.
 *
 * The fair scheduler ignores a boost that is too unfair: the spinner, which ran little, has less virtual time than the target,
 * which used up its slice, and is picked again and again (scheduler mismatch). Ruling 30: when both share a run queue and the
 * target's virtual time is ahead of the spinner's by more than a threshold, the spinner's becomes the target's minus the
 * threshold. No virtual time is ever lowered, and the target's is never touched.
 *
 * Two forms. The paper's compares the two tasks, and so does nothing when they are in different cgroups (libvirt gives each
 * vCPU one of its own); the authors' patch tests cfs_rq_of() of both. Ours, `ancestor`, compares the two ancestors, or tasks,
 * that share a queue: the yielder's is raised there, with everybody else in that group on that pCPU.
 *
 * Virtual times are the scheduler's own and wrap around as the kernel's. The threshold on CFS is the wake-up granularity
 * (wakeup_gran()); elsewhere a parameter. The patch takes the spinner's granularity for the test and the target's for the new
 * value: with unequal weights that could lower a virtual time, so here one threshold does both. It acts before the yield
 * itself (yield_to_task_fair() calls it between set_next_buddy() and yield_task_fair()).
 */
#ifndef UNSPIN_POLICY_MODEL_DEBOOST_H
#define UNSPIN_POLICY_MODEL_DEBOOST_H

#include "../../abi/types.h"
#include "known.h"

enum unspin_deboost_form {
	UNSPIN_DEBOOST_OFF = 0,
	UNSPIN_DEBOOST_PAPER = 1,
	UNSPIN_DEBOOST_ANCESTOR = 2,
};

struct unspin_deboost_facts {
	/* Paper: the tasks'. Ancestor: those of the two entities in the queue that both are in or below. */
	unspin_u64 yielder_vtime;
	unspin_u64 target_vtime;
	unspin_u64 threshold;	/* in the same unit; below 2^63 */
	unspin_u32 same_cpu;	/* enum unspin_known: both wait on, or run on, the same pCPU */
	unspin_u32 same_parent; /* enum unspin_known: both are in the same group */
};
UNSPIN_ASSERT_SIZE(struct unspin_deboost_facts, 32);

/* The yielder's virtual time from now on; unchanged, too, when it is not known whether they share a queue. */
static inline unspin_u64 unspin_deboosted(unspin_u32 form, const struct unspin_deboost_facts *facts)
{
	unspin_u64 ahead = facts->target_vtime - facts->yielder_vtime;

	if (form == UNSPIN_DEBOOST_OFF || facts->same_cpu != UNSPIN_YES)
		return facts->yielder_vtime;
	if (form == UNSPIN_DEBOOST_PAPER && facts->same_parent != UNSPIN_YES)
		return facts->yielder_vtime;
	/* A difference of 2^63 or more is a negative one: the target is behind. */
	if (ahead >> 63 || ahead <= facts->threshold)
		return facts->yielder_vtime;
	return facts->target_vtime - facts->threshold;
}

#endif
