/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * boundary.bpf.h - where a vCPU's slice or its extra time is over: what waits then, eCS's account of it (ruling 22), and the
 * timer that polls borrowers.
 */
#ifndef UNSPIN_BPF_SCHEDULER_BOUNDARY_H
#define UNSPIN_BPF_SCHEDULER_BOUNDARY_H

#include "guest/vcpus.bpf.h"

#define POLL_NS 200000ull /* between two polls of a borrower: as in the first trials, some 1 % of a CPU on hardware */

/* Tasks that wait and may run on this CPU. A queue of a CPU has those that may run on it, but for a mask that changes. */
static __always_inline u32 others_waiting(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_context *here = cpu_of(cpu);
	u32 others = scx_bpf_dsq_nr_queued(cpu) + scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL);

	if (here && here->flags & UNSPIN_STEER_CPU_SHARED)
		others += scx_bpf_dsq_nr_queued(shared_queue_of(here));
	return others;
}

/* p, a vCPU that runs here, has used up its slice or its extra time. Its facts are refreshed (ruling 22). */
static __always_inline void reach_boundary(struct task_struct *p, struct task_context *task)
{
	task->boundary = BOUNDARY_REACHED;
	remember(p, task);
	if (!is_critical(task) || !others_waiting())
		return;
	count(unspin_steer_critical_ends, 1);
	task->boundary |= BOUNDARY_CRITICAL;
}

/* A runnable vCPU loses its CPU: eCS's account (ruling 22). Its facts are fresh. */
static __always_inline void count_preemption(const struct task_context *task, bool pushed_aside)
{
	if (pushed_aside) {
		if (is_critical(task))
			count(unspin_steer_critical_pushed, 1);
	} else if (task->boundary) {
		count(unspin_steer_ended, 1);
		if (task->boundary & BOUNDARY_CRITICAL)
			count(unspin_steer_critical_lost, 1);
	}
}

/* The first poll of a borrower, and each one after it until its budget is spent. Runs on the CPU that it was armed on. */
static int poll_borrower(void *map, u32 *cpu, struct cpu_context *here)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task = context_of(p);
	u64 now_ns = bpf_ktime_get_ns(), left_ns;

	/* Another task runs here by now: not to be cut. */
	if (!task || task->borrow_kind == UNSPIN_BORROWS_NOTHING)
		return 0;
	left_ns = unspin_slice_left(task->borrowed_since_ns + task->budget_ns, now_ns);
	if (!left_ns) {
		count(unspin_steer_capped, 1);
		if (task->borrow_kind == UNSPIN_BORROWS_GRANT)
			reach_boundary(p, task);
		audit_count(overrun);
		leave(p, task);
	} else if (!task->silent && done_with_it(p, task, now_ns)) {
		count(unspin_steer_given_back, 1);
		leave(p, task);
	} else {
		bpf_timer_start(&here->timer, left_ns < POLL_NS ? left_ns : POLL_NS, BPF_F_TIMER_CPU_PIN);
	}
	return 0;
}

/* A guest that is notified ends its loan itself: only the cap is watched, as that of silent time. Others are polled. */
static __always_inline void watch(struct task_context *task)
{
	struct cpu_context *here = cpu_of(bpf_get_smp_processor_id());
	u64 first_ns;

	if (!here)
		return;
	task->watched_ns = task->borrowed_since_ns;
	if (bpf_timer_init(&here->timer, &cpus, CLOCK_MONOTONIC) == 0)
		bpf_timer_set_callback(&here->timer, poll_borrower);
	first_ns = is_notified(task) || task->silent || task->budget_ns < POLL_NS ? task->budget_ns : POLL_NS;
	bpf_timer_start(&here->timer, first_ns, BPF_F_TIMER_CPU_PIN);
}

#endif
