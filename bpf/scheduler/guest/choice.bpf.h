/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * choice.bpf.h - the policies of a vCPU, or of a thread with a page: those of its process, or those for all.
 *
 * Each thread has a copy, which is renewed at its slice's beginning and where it yields if user space has changed any: one number is
 * compared there, and a decision needs no lookup.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_CHOICE_H
#define UNSPIN_BPF_SCHEDULER_GUEST_CHOICE_H

#include "../weights.bpf.h"

#define TICK_OF_USER_NS 10000000ull /* NSEC_PER_SEC / USER_HZ: nsec_to_clock_t(), kernel/time/time.c, Linux 7.2 */

/* When the task's process began, as in /proc/PID/stat. A safe read: the first thread may be gone. */
static __always_inline u64 started_ticks(struct task_struct *p)
{
	struct task_struct___steer *known = (struct task_struct___steer *)p;

	return BPF_CORE_READ(known, group_leader, start_boottime) / TICK_OF_USER_NS;
}

/*
 * `in_cgroup`: it is in a cgroup that policies touch. Returns 0. Not inlined, and not static: the verifier goes through it once. Its
 * thread runs, or begins to.
 */
__attribute__((noinline)) int choose_policies(struct task_struct *p __arg_trusted,
					      struct task_context *task __arg_nonnull, u32 in_cgroup)
{
	u32 process = scheduled(p)->tgid;
	struct unspin_steer_vm *own;

	task->choice_seen = policy_changes;
	barrier(); /* what is changed after this is seen the next time */
	own = bpf_map_lookup_elem(&vm_policies, &process);
	if (own && own->started_ticks != started_ticks(p))
		own = NULL;
	task->steered = options.everyone || in_cgroup || own || bpf_map_lookup_elem(&steered_processes, &process);
	if (own) {
		task->choice = own->choice;
		return 0;
	}
	task->choice.policies = control.everyone.policies;
	task->choice.slice_ns = control.everyone.slice_ns;
	task->choice.recent_ns = control.everyone.recent_ns;
	task->choice.threshold_ns = control.everyone.threshold_ns;
	task->choice.candidates = control.everyone.candidates;
	task->choice.candidate_options = control.everyone.candidate_options;
	return 0;
}

/* The same by the task's cgroup. */
static __always_inline void choose_policies_of(struct task_struct *p, struct task_context *task)
{
	struct group *group = group_at(task->group);

	choose_policies(p, task, group && group->steered);
}

/* The same if anything has changed. */
static __always_inline void renew_choice(struct task_struct *p, struct task_context *task)
{
	if (task->choice_seen != policy_changes && (task->vcpu || task->page))
		choose_policies_of(p, task);
}

#endif
