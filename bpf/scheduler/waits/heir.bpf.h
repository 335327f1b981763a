/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * heir.bpf.h - a task that wakes another one and goes to sleep hands its CPU over to that one, its heir, by the rule of
 * policy/mechanics/wakeup.h.
 */
#ifndef UNSPIN_BPF_SCHEDULER_WAITS_HEIR_H
#define UNSPIN_BPF_SCHEDULER_WAITS_HEIR_H

#include "../slices.bpf.h"

/*
 * The task that runs on this CPU is about to sleep and wakes p, which is placed in a shared queue. Whether p is the heir: that queue is
 * this CPU's, and it is the first that the task wakes in this run. From ops.select_cpu only.
 */
static __always_inline bool name_heir(struct task_struct *p, const struct task_context *task, u32 self)
{
	struct cpu_context *here = cpu_of(self);

	if (!here || !(here->flags & UNSPIN_STEER_CPU_SHARED) || shared_queue_of(here) != task->home)
		return false;
	here->heir = here->has_woken ? 0 : scheduled(p)->pid;
	here->heir_ns = position_of(task);
	here->has_woken++;
	return here->heir != 0;
}

/*
 * p, the heir, is to wait on this CPU alone and to come next without a dispatch, if the task that runs here handed its CPU over in its last
 * run, too. If that goes on this time, the heir comes at its slice's end. Not where a dispatch has more to do than to take the first of
 * the queues. From ops.select_cpu only.
 */
static __always_inline void hand_over_at_once(struct task_struct *p, struct task_context *task, u32 self, u64 now_ns)
{
	struct task_context *waker = context_of(bpf_get_current_task_btf());
	struct cpu_context *here = cpu_of(self);
	struct task_struct *first;

	if (options.only_vms || quotas || !here || !waker || !waker->hands_over || waker->lender || waker->alone)
		return;
	if (here->next || here->called || here->crowd ||
	    !unspin_may_skip_queues(here->dispatched_ns, now_ns, options.slice_ns))
		return;
	if (scx_bpf_dsq_peek(self))
		return;
	first = scx_bpf_dsq_peek(task->home);
	if (first && !unspin_is_handed_over(here->heir_ns, scheduled(first)->scx.dsq_vtime, options.slice_ns))
		return;
	here->heir = 0;
	task->placed = NOT_PLACED;
	task->queue = NO_QUEUE;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(task), 0);
	count(unspin_steer_handed_over, 1);
}

/*
 * The task that ran on this CPU sleeps: whether its heir comes, past the first of those that wait in the shared queue, a thread that has
 * come to first_ns; 1 or 0. From ops.dispatch only. Not inlined, and not static: the verifier goes through it once.
 */
__attribute__((noinline)) int hand_over(s32 cpu, u32 first, u64 first_ns, u64 now_ns)
{
	struct cpu_context *here = cpu_of(cpu);
	struct task_context *task;
	struct task_struct *p;
	bool came = false;

	if (!here || here->heir == first || !unspin_is_handed_over(here->heir_ns, first_ns, options.slice_ns))
		return 0;
	p = bpf_task_from_pid(here->heir);
	here->heir = 0;
	if (!p)
		return 0;
	task = context_of(p);
	if (task && task->queue == shared_queue_of(here) && !(quotas && is_throttled(task, now_ns)))
		came = fetch(cpu, p, task, slice_of(task));
	bpf_task_release(p);
	if (came)
		count(unspin_steer_handed_over, 1);
	return came;
}

#endif
