/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slice_end.bpf.h - a slice is used up, in time and not in ticks: by a timer of its CPU's, as the fair class has it with HRTICK
 * (on since Linux 7.1). The same timer takes samples of a vCPU that may be spinning.
 */
#ifndef UNSPIN_BPF_SCHEDULER_SLICE_END_H
#define UNSPIN_BPF_SCHEDULER_SLICE_END_H

#include "boundary.bpf.h"
#include "yield/pending_ipi.bpf.h"
#include "yield/samples.bpf.h"

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
	struct cpu_context *here = cpu_of(bpf_get_smp_processor_id());
	struct unspin_facts facts; /* all of it is gathered */
	struct unspin_decision decision;
	u64 now_ns = bpf_ktime_get_ns();

	if (fact_known(task->critical)) {
		audit_count(boundaries);
		if (task->critical.value) {
			audit_count(claimed);
			task->lock_ns = now_ns;
		}
	}
	vcpu_is_unknown(&facts.candidate);
	facts_of_self(&facts, task, now_ns, now_ns);
	if (options.chooses && task->sent_to && awaits_answer(task))
		facts.self.awaits = (struct unspin_fact){UNSPIN_AWAITS_NOW, 0};
	decision = decide(UNSPIN_ON_SLICE_END, p, task, &facts, 0, now_ns);
	if (decision.action != UNSPIN_GRANT && decision.action != UNSPIN_EXTEND)
		return false;
	count(unspin_steer_granted, 1);
	if (here)
		here->runner_weight = 0; /* no wake-up takes the grant away */
	if (task->payer) {
		charge(p, task, now_ns);
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

/* Whether policies may be called at the end of its slice at all. */
static __always_inline bool may_be_prolonged(const struct task_context *task)
{
	return (task->vcpu || task->page) && task->steered && task->choice.policies &&
	       unspin_may_be_granted(task->borrow_kind) && !task->yielding;
}

static void arm_slice_timer(u32 cpu, struct cpu_context *here, u64 now_ns, u64 end_ns);

/* When the timer is to fire for the task that runs here: at its slice's end, or before for a sample. */
static __always_inline u64 next_timer_ns(const struct task_context *task)
{
	bool sample = task->sample_ns && unspin_before(task->sample_ns, task->slice_end_ns);

	return sample ? task->sample_ns : task->slice_end_ns;
}

/*
 * Softirq on the CPU it was armed on. The slice that runs there may be a later one than it was armed for, and a grant ends by a
 * timer of its own. If no task waits, and the quota lasts, the slice continues, and the tick checks again.
 */
static int slice_is_over(void *map, u32 *cpu, struct slice_timer *timer)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task = context_of(p);
	struct cpu_context *here = cpu_of(*cpu);
	u64 now_ns = bpf_ktime_get_ns();

	if (!here)
		return 0;
	here->slice_timer_ns = 0;
	/* It was moved here from a CPU that went off. */
	if (*cpu != bpf_get_smp_processor_id())
		return 0;
	if (!task || !task->on_cpu || task->borrow_kind == UNSPIN_BORROWS_GRANT)
		return 0;
	if (!others_waiting() && !uses_up_quotas(task->group, now_ns - task->charged_at_ns, now_ns))
		return 0;
	take_sample(task, now_ns);
	if (unspin_before(now_ns, task->slice_end_ns)) {
		arm_slice_timer(*cpu, here, now_ns, next_timer_ns(task));
		return 0;
	}
	if (task->vcpu) {
		reach_boundary(p, task);
		if (may_be_sampled(task) && waits_at_place(task))
			task->spun++;
		if (may_be_prolonged(task) && prolong(p, task))
			return 0;
	}
	end_slice(p);
	return 0;
}

/* From the CPU with that number. */
static __always_inline void arm_slice_timer(u32 cpu, struct cpu_context *here, u64 now_ns, u64 end_ns)
{
	struct slice_timer *of_cpu = bpf_map_lookup_elem(&slice_timers, &cpu);
	u64 left_ns = unspin_slice_left(end_ns, now_ns);

	if (!of_cpu)
		return;
	if (!here->slice_timer_ready) {
		if (bpf_timer_init(&of_cpu->timer, &slice_timers, CLOCK_MONOTONIC) == 0)
			bpf_timer_set_callback(&of_cpu->timer, slice_is_over);
		here->slice_timer_ready = 1;
	}
	here->slice_timer_ns = end_ns ? end_ns : 1;
	bpf_timer_start(&of_cpu->timer, unspin_slice_length(left_ns, UNSPIN_BORROWS_NOTHING, 0), BPF_F_TIMER_CPU_PIN);
}

/*
 * The timer of that CPU, this one, is to fire then. Returns 0. Not inlined, and not static: the verifier walks it, and the timer's
 * callback with it, once for each program.
 */
__attribute__((noinline)) int arm_slice_timer_here(u32 cpu, u64 now_ns, u64 end_ns)
{
	struct cpu_context *here = cpu_of(cpu);

	if (here)
		arm_slice_timer(cpu, here, now_ns, end_ns);
	return 0;
}

/*
 * A slice that runs on that CPU, this one, shall end on time, and its task be sampled. A timer that is armed for an earlier end stays,
 * and is armed anew when it fires: tasks that run for microseconds cost no timer each. One that is late by a tick was lost with its CPU.
 */
static __always_inline void end_slice_on_time(u32 cpu, const struct cpu_context *here, const struct task_context *task,
					      u64 now_ns)
{
	u64 timer_ns = here->slice_timer_ns, wanted_ns;

	if (task->alone)
		return;
	wanted_ns = next_timer_ns(task);
	if (timer_ns && unspin_before(now_ns, timer_ns + UNSPIN_TICK_NS) && !unspin_before(wanted_ns, timer_ns))
		return;
	arm_slice_timer_here(cpu, now_ns, wanted_ns);
}

SEC("struct_ops/tick")
void BPF_PROG(steer_tick, struct task_struct *p)
{
	struct task_context *task = context_of(p);
	struct cpu_context *here;
	s32 cpu;

	if (!task)
		return;
	cpu = bpf_get_smp_processor_id();
	here = cpu_of(cpu);
	if (here && task->borrow_kind != UNSPIN_BORROWS_GRANT && others_waiting())
		end_slice_on_time(cpu, here, task, bpf_ktime_get_ns());
	if (!task->vcpu)
		return;
	if (is_notified(task))
		task->overloaded = unspin_pcpu_overloaded(others_waiting());
	if (scheduled(p)->scx.slice)
		return;
	reach_boundary(p, task);
	if (may_be_prolonged(task))
		prolong(p, task);
}

#endif
