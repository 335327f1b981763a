/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slice_end.bpf.h - a slice is used up: at a tick, or, where the policy slice is on, by a timer of ours.
 */
#ifndef UNSPIN_BPF_SCHEDULER_SLICE_END_H
#define UNSPIN_BPF_SCHEDULER_SLICE_END_H

#include "boundary.bpf.h"
#include "yield/help.bpf.h"

/* One CPU. Apart from struct cpu_context: a map value holds one timer. */
struct slice_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: possible CPUs */
	__type(key, u32);
	__type(value, struct slice_timer);
} slice_timers SEC(".maps");

/*
 * A vCPU's slice is used up and it runs: whether a policy prolongs it. Its facts are fresh. The slice may be another's,
 * passed on for good: that one pays up to here, and the grant is charged to the vCPU that runs.
 */
static __always_inline bool prolong(struct task_struct *p, struct task_context *task)
{
	struct unspin_facts facts = {};
	struct unspin_decision decision;
	u64 now_ns = bpf_ktime_get_ns();

	if (fact_known(task->critical)) {
		audit_count(boundaries);
		if (task->critical.value)
			audit_count(claimed);
	}
	vcpu_is_unknown(&facts.candidate);
	facts_of_self(&facts, task, now_ns, now_ns);
	decision = decide(UNSPIN_ON_SLICE_END, p, task, &facts, 0, now_ns);
	if (decision.action != UNSPIN_GRANT && decision.action != UNSPIN_EXTEND)
		return false;
	count(unspin_steer_granted, 1);
	if (task->payer) {
		charge(p, task);
		task->payer = 0;
	}
	task->boundary = 0;
	task->silent = decision.action == UNSPIN_EXTEND;
	task->borrow_kind = UNSPIN_BORROWS_GRANT;
	task->borrowed_since_ns = now_ns;
	task->borrow_charged_ns = scheduled(p)->se.sum_exec_runtime;
	task->budget_ns = decision.budget_ns;
	scx_bpf_task_set_slice(p, decision.budget_ns);
	notify_thread(p, task, 1);
	return true;
}

/* Whether policies may be asked about the end of its slice at all. */
static __always_inline bool may_be_prolonged(const struct task_context *task)
{
	return (task->vcpu || task->page) && task->steered && unspin_may_be_granted(task->borrow_kind) &&
	       !task->yielding;
}

SEC("struct_ops/tick")
void BPF_PROG(steer_tick, struct task_struct *p)
{
	struct task_context *task;

	task = context_of(p);
	if (!task || !task->vcpu)
		return;
	if (is_notified(task))
		task->overloaded = unspin_pcpu_overloaded(others_waiting());
	if (scheduled(p)->scx.slice)
		return;
	reach_boundary(p, task);
	if (control.policies && may_be_prolonged(task))
		prolong(p, task);
}

/* Softirq on the CPU it was armed on. A task whose slice has not ended by now is another than the one it was armed for. */
static int slice_is_over(void *map, u32 *cpu, struct slice_timer *timer)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task = context_of(p);

	if (!task || !task->vcpu || !task->on_cpu || !control.slice_ns || task->borrow_kind == UNSPIN_BORROWS_GRANT ||
	    unspin_before(bpf_ktime_get_ns(), task->slice_end_ns))
		return 0;
	reach_boundary(p, task);
	if (control.policies && may_be_prolonged(task) && prolong(p, task))
		return 0;
	end_slice(p);
	return 0;
}

/* The current thread enters its guest, interrupts are off: its slice shall end on time, be it its own or passed on. */
static __always_inline void end_slice_on_time(struct task_context *task)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct slice_timer *here;
	u64 left_ns;

	if (!control.slice_ns || !task->steered || task->timed_slice_ns == task->slice_end_ns)
		return;
	here = bpf_map_lookup_elem(&slice_timers, &cpu);
	if (!here)
		return;
	task->timed_slice_ns = task->slice_end_ns;
	if (bpf_timer_init(&here->timer, &slice_timers, STEER_CLOCK_MONOTONIC) == 0)
		bpf_timer_set_callback(&here->timer, slice_is_over);
	left_ns = unspin_slice_left(task->slice_end_ns, bpf_ktime_get_ns());
	bpf_timer_start(&here->timer, unspin_slice_length(left_ns, UNSPIN_BORROWS_NOTHING, 0), STEER_TIMER_ON_THIS_CPU);
}

#endif
