/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gang.bpf.h - a vCPU begins a slice, and those of its siblings that wait are called to other CPUs (policy/steering/gang.h).
 *
 * A call is a yield buddy (scheduler/yield/buddy.bpf.h) that another CPU leaves here: the sibling begins a slice of its own, unless that is too
 * unfair. Calls happen where slices begin, under the lock of the caller's run queue; the other CPU takes them up in its own
 * ops.dispatch. A call that is overwritten, or comes too late, is lost: the sibling still waits in its queue.
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_GANG_H
#define UNSPIN_BPF_SCHEDULER_YIELD_GANG_H

#include "help.bpf.h"

/* The task runs here from now on. */
static __always_inline void occupy(struct cpu_context *here, const struct task_context *task)
{
	here->runs.since_ns = task->slice_end_ns - slice_of(task);
	/* One that runs on another's charge, or on a grant, does not run for long. */
	here->runner_ns = position_of(task);
	here->runner_since_ns = task->charged_at_ns;
	here->runner_weight = task->borrow_kind == UNSPIN_BORROWS_NOTHING && !task->payer ? task->effective : 0;
	here->runs.vm = unspin_gang_vm(task->vcpu ? task->vm : 0, task->borrow_kind != UNSPIN_BORROWS_NOTHING);
}

/* The first CPU from that one on where a slice may be cut for that VM; options.cpus: none. */
__attribute__((noinline)) u32 find_cut(u32 from, u64 vm, u64 now_ns)
{
	u32 cpu;

	bpf_for(cpu, from, options.cpus)
	{
		struct cpu_context *there = cpu_of(cpu);

		if (there && there->flags & UNSPIN_STEER_CPU_SHARED && !there->offline &&
		    unspin_gang_may_cut(&there->runs, there->called != 0, vm, now_ns))
			return cpu;
	}
	return options.cpus;
}

/* Calls that thread to that CPU if the policies decide so. `asks` began its slice just now. Returns whether it was called. */
__attribute__((noinline)) int call_to(u32 cpu, u32 asks, u32 thread, u64 now_ns)
{
	struct unspin_decision decision = {};
	struct task_struct *self, *p;
	struct task_context *task, *other;
	struct cpu_context *there = cpu_of(cpu);
	struct unspin_facts facts = {};

	self = bpf_task_from_pid(asks);
	if (!self)
		return 0;
	p = bpf_task_from_pid(thread);
	if (!p) {
		bpf_task_release(self);
		return 0;
	}
	task = context_of(self);
	other = context_of(p);
	if (there && task && other && other->vm == task->vm && other->steered && !other->on_cpu && other->counted &&
	    !unspin_is_called(other->called_until_ns, now_ns) && may_run_on(p, cpu)) {
		gather_candidate(&facts.candidate, p, other, now_ns);
		facts_of_self(&facts, task, now_ns, now_ns);
		gather_order(&facts.order, task, p, other, now_ns);
		decision = decide(UNSPIN_ON_CALL, self, task, &facts, thread, now_ns);
	}
	if (there && other && decision.action == UNSPIN_YIELD_BUDDY) {
		count(unspin_steer_called, 1);
		other->called_until_ns = unspin_called_until(now_ns);
		there->called_until_ns = unspin_called_until(now_ns);
		there->called_threshold_ns = decision.budget_ns;
		barrier(); /* a CPU that takes the call up finds the rest */
		__sync_lock_test_and_set(&there->called, thread);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	bpf_task_release(p);
	bpf_task_release(self);
	return decision.action == UNSPIN_YIELD_BUDDY;
}

/* That thread has begun a slice of its own: each CPU whose slice may be cut gets one sibling. */
__attribute__((noinline)) int call_siblings(u32 asks, u64 vm, u64 now_ns)
{
	struct vm *all = bpf_map_lookup_elem(&vms, &vm);
	u32 cpu = find_cut(0, vm, now_ns);
	u32 number;

	if (!all)
		return 0;
	bpf_for(number, 0, VM_VCPUS)
	{
		u32 thread;

		if (cpu >= options.cpus || number >= VM_VCPUS) /* the second for the verifier */
			break;
		thread = all->threads[number];
		if (thread && thread != asks && call_to(cpu, asks, thread, now_ns))
			cpu = find_cut(cpu + 1, vm, now_ns);
	}
	return 0;
}

/* A slice of its own has begun. */
static __always_inline void gang(struct task_struct *p, const struct task_context *task, u64 now_ns)
{
	if (task->choice.policies & unspin_policy_gang && task->vcpu && task->steered)
		call_siblings(scheduled(p)->pid, task->vm, now_ns);
}

/* The thread that was called here becomes the candidate of a yield buddy. Returns whether one was. */
static __always_inline bool take_call(struct cpu_context *here)
{
	u32 thread = here->called;

	if (!thread || here->next)
		return false;
	here->called = 0;
	here->next = thread;
	here->next_borrow_kind = UNSPIN_BORROWS_NOTHING;
	here->next_returns = 0;
	here->next_is_buddy = 1;
	here->next_threshold_ns = here->called_threshold_ns;
	here->next_credit_ns = 0;
	here->next_until_ns = here->called_until_ns;
	return true;
}

#endif
