/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * lag_credit.h - the upstream proposal of June 2026 (Wanpeng Li, "Semantics-aware directed yield for oversubscribed KVM",
 * third version, patches 1 to 5; not merged): the vCPU that a spinner yields to is made eligible, so that EEVDF follows the pv page.
 *
 * EEVDF runs the next buddy only when it is eligible: its virtual time not after the queue's average, at its own level and at
 * that of each ancestor. So each level that is not gets lag: a small positive margin, growing with the depth of the queue,
 * so that it stays eligible over several decisions, and never more than the lag that the scheduler itself keeps
 * (entity_lag()). Levels that are eligible are left alone; the yielder's virtual time is not touched (unlike deboost.h). It
 * happens on every directed yield within one run queue. Once per 6 ms and run queue, the yielder's protection against
 * preemption within its slice (RUN_TO_PARITY) ends as well, so that the target can run at once.
 *
 * The cover letter is what is known of it: how the margin grows is not in there. Ours: so much per runnable task, a parameter.
 * The KVM half (patches 6 to 10) is a rule of candidate.h.
 */
#ifndef UNSPIN_POLICY_MODEL_LAG_CREDIT_H
#define UNSPIN_POLICY_MODEL_LAG_CREDIT_H

#include "../../abi/bpf/events.h"

/* Ours, per runnable task of the queue: with 2 to 8 tasks 0.2 to 0.8 ms, "small" beside a base slice of 2.8 ms. */
#define UNSPIN_LAG_MARGIN_NS 100000u
/* Between two forced reschedules of a run queue. */
#define UNSPIN_LAG_FORCE_NS 6000000u

/* One level: the target, or an ancestor of it, in the queue that it waits in. Virtual times wrap around. */
struct unspin_lag_facts {
	unspin_u64 average_vtime; /* of the queue: avg_vruntime() */
	unspin_u64 target_vtime;
	unspin_u64 limit_vtime;	 /* the most lag that entity_lag() keeps; below 2^63 */
	unspin_u64 margin_vtime; /* per runnable task */
	unspin_u32 runnable;	 /* tasks of that run queue, the one that runs included */
	unspin_u32 unused;
};
UNSPIN_ASSERT_SIZE(struct unspin_lag_facts, 40);

/* How much lag the target gets at a level where it is not eligible. */
static inline unspin_u64 unspin_lag_margin(const struct unspin_lag_facts *facts)
{
	if (facts->runnable != 0 && facts->margin_vtime > facts->limit_vtime / facts->runnable)
		return facts->limit_vtime;
	return facts->margin_vtime * facts->runnable;
}

/*
 * The target's virtual time from now on, for the average as it stands; unchanged where it is eligible. A scheduler that takes
 * it out of its queue and puts it back places it by this lag as it places any other (place_entity()).
 */
static inline unspin_u64 unspin_lag_credited(const struct unspin_lag_facts *facts)
{
	unspin_u64 behind = facts->target_vtime - facts->average_vtime;

	/* Eligible: not after the average. A difference of 2^63 or more is a negative one. */
	if (behind == 0 || behind >> 63)
		return facts->target_vtime;
	return facts->average_vtime - unspin_lag_margin(facts);
}

/* Whether the run queue may be forced to reschedule; `last_ns`: when it last was, or UNSPIN_UNKNOWN: never. */
static inline _Bool unspin_lag_forces(unspin_u64 now_ns, unspin_u64 last_ns)
{
	return last_ns == UNSPIN_UNKNOWN || now_ns - last_ns >= UNSPIN_LAG_FORCE_NS;
}

#endif
