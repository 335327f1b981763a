/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * starvation_bound.bpf.h - waits are bounded, by the rules of policy/mechanics/starvation_bound.h: here is which CPU measures
 * which clock, and which task is the last of a queue.
 */
#ifndef UNSPIN_BPF_SCHEDULER_WAITS_STARVATION_BOUND_H
#define UNSPIN_BPF_SCHEDULER_WAITS_STARVATION_BOUND_H

#include "../virtual_time.bpf.h"

/* Measures a clock's rate when it is time for it; whether it was, and is known. */
static __always_inline bool measure_rate(struct unspin_clock_rate *rate, u64 clock_ns, u64 now_ns)
{
	u64 since_ns = *(volatile u64 *)&rate->since_ns;

	/* Of the CPUs that measure the shared one's one does. */
	if (!unspin_rate_is_due(since_ns, now_ns) || !__sync_bool_compare_and_swap(&rate->since_ns, since_ns, now_ns))
		return false;
	return unspin_measure_rate(rate, since_ns, clock_ns, now_ns);
}

/*
 * The last ones of that queue have at most that virtual time from now on, and none that they have for a weight of before; 1: one had
 * more, or 0. From ops.dispatch only. Not inlined, and not static: the verifier goes through it once.
 */
__attribute__((noinline)) int bring_forward(u32 queue, u64 latest_ns)
{
	struct bpf_iter_scx_dsq backwards;
	struct task_context *task;
	struct task_struct *last;
	u64 weight, vtime_ns;
	bool moved = false;
	int look;

	if (bpf_iter_scx_dsq_new(&backwards, queue, SCX_DSQ_ITER_REV) == 0) {
		bpf_for(look, 0, (int)UNSPIN_LAST_COMPARED)
		{
			last = bpf_iter_scx_dsq_next(&backwards);
			if (!last)
				break;
			task = context_of(last);
			if (!task)
				continue;
			weight = effective_weight(task);
			vtime_ns = unspin_reweighted_vtime(scheduled(last)->scx.dsq_vtime, clock_of(queue),
							   task->effective, weight);
			if (unspin_before(latest_ns, vtime_ns))
				vtime_ns = latest_ns;
			if (!unspin_before(vtime_ns, scheduled(last)->scx.dsq_vtime))
				continue;
			scx_bpf_dsq_move_set_vtime(&backwards, vtime_ns);
			if (!scx_bpf_dsq_move_vtime(&backwards, last, queue, 0))
				continue;
			task->vtime_ns = vtime_ns;
			task->effective = weight;
			moved = true;
			count(unspin_steer_brought_forward, 1);
		}
	}
	bpf_iter_scx_dsq_destroy(&backwards);
	return moved;
}

/*
 * A task that waits for this CPU and is too far ahead is brought forward: some of each queue now and then, and at each dispatch
 * while there are more. From ops.dispatch only.
 */
static __always_inline void bound_starvation(s32 cpu, struct cpu_context *here, u64 now_ns)
{
	struct domain *domain = here->flags & UNSPIN_STEER_CPU_SHARED ? domain_of(shared_queue_of(here)) : NULL;
	bool more = here->behind;
	u64 ahead_ns;

	if (domain)
		measure_rate(&domain->rate, domain->now_ns, now_ns);
	more |= measure_rate(&here->rate, here->front_ns, now_ns);
	if (!more)
		return;
	ahead_ns = unspin_farthest_ahead(here->rate.in_time_ns, options.slice_ns);
	more = bring_forward(cpu, unspin_latest_own(here->front_ns, ahead_ns, here->offset_ns));
	if (domain)
		more |= bring_forward(
			shared_queue_of(here),
			unspin_latest_shared(here->front_ns, ahead_ns, domain->now_ns, domain->rate.in_time_ns));
	here->behind = more;
}

#endif
