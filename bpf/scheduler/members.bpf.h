/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * members.bpf.h - tasks and cgroups that come, go and change their weight or place.
 */
#ifndef UNSPIN_BPF_SCHEDULER_MEMBERS_H
#define UNSPIN_BPF_SCHEDULER_MEMBERS_H

#include "only_vms/threads.bpf.h"
#include "queues.bpf.h"

#define ENOMEM 12
#define ENOSPC 28

SEC("struct_ops/runnable")
void BPF_PROG(steer_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_context *task = context_of(p);

	if (task)
		count_weight(task, task->weight);
}

SEC("struct_ops/quiescent")
void BPF_PROG(steer_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_context *task = context_of(p);

	if (task)
		count_weight(task, 0);
}

/* By class and nice value. p->scx.weight is the same in hundredths of nice 0. */
static __always_inline u32 weight_of(struct task_struct *p)
{
	if (scheduled(p)->policy == SCHED_IDLE)
		return UNSPIN_IDLE_WEIGHT;
	return unspin_weight_of_nice(scheduled(p)->static_prio - DEFAULT_PRIO);
}

SEC("struct_ops/set_weight")
void BPF_PROG(steer_set_weight, struct task_struct *p, u32 hundredths)
{
	struct task_context *task = context_of(p);

	if (!task)
		return;
	task->weight = weight_of(p);
	if (task->counted)
		count_weight(task, task->weight);
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(steer_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_context *task = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	/* fork() fails with this, which its callers expect. */
	if (!task)
		return -ENOMEM;
	task->weight = UNSPIN_NICE_0_WEIGHT;
	task->group = index_of(args->cgroup);
	task->queue = NO_QUEUE;
	task->critical = UNSPIN_UNKNOWN_FACT;
	task->sections = UNSPIN_UNKNOWN_FACT;
	task->mode = UNSPIN_UNKNOWN_FACT;
	if (options.only_vms)
		note_fork(p, task, args->fork);
	return 0;
}

/* It becomes ours: a new task, or one of another class. */
SEC("struct_ops/enable")
void BPF_PROG(steer_enable, struct task_struct *p)
{
	struct task_context *task = context_of(p);

	if (!task)
		return;
	task->weight = weight_of(p);
	start(task);
	task->charged_ns = scheduled(p)->se.sum_exec_runtime;
	task->slept_ns = task->charged_ns;
	if (options.only_vms)
		note_child(p, task);
}

/* Whether cpu.idle of the cgroup is 1. Safe reads: its cpu controller may be off, or it is going away. */
static __always_inline bool is_idle_cgroup(struct cgroup *cgrp)
{
	u64 at = (u64)&cgrp->subsys + bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id) * sizeof(void *);
	struct task_group *tasks_of = NULL;

	bpf_probe_read_kernel(&tasks_of, sizeof(tasks_of), (void *)at);
	/* The css is first in it: css_tg(), kernel/sched/sched.h, Linux 7.2. */
	return tasks_of && BPF_CORE_READ(tasks_of, idle) > 0;
}

/* As on the fair class, sched_group_set_idle(), kernel/sched/fair.c, Linux 7.2: without cpu.idle a cgroup has the default weight again. */
static __always_inline u32 weight_of_idle(bool idle)
{
	return idle ? UNSPIN_IDLE_WEIGHT : UNSPIN_NICE_0_WEIGHT;
}

/* A group of its own for that cgroup, which has its number; NULL: it lies too deep, or there is none left. */
static __always_inline struct group *take_group(u64 id, u32 depth)
{
	u32 index;

	if (depth > UNSPIN_DEEPEST_GROUP || bpf_map_pop_elem(&free_groups, &index))
		return NULL;
	if (bpf_map_update_elem(&group_of_cgroup, &id, &index, 0)) {
		bpf_map_push_elem(&free_groups, &index, 0);
		return NULL;
	}
	return group_at(index);
}

SEC("struct_ops.s/cgroup_init")
s32 BPF_PROG(steer_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u64 id = BPF_CORE_READ(cgrp, kn, id);
	struct group *group, *above;
	u32 parent, *level;

	if (BPF_CORE_READ(cgrp, level) == 0)
		return 0;
	parent = index_of(BPF_CORE_READ(cgrp, self.parent, cgroup));
	above = group_at(parent);
	group = above ? take_group(id, above->depth + 1) : NULL;
	if (!group || !above) {
		count(unspin_steer_groups_folded, 1);
		/* User space has named those before: this one is new. */
		return args->bw_quota_us == STEER_NO_QUOTA ? 0 : -ENOSPC;
	}
	group->parent = parent;
	group->active = (struct unspin_group_weight){.weight = unspin_weight_of_cgroup(args->weight)};
	if (is_idle_cgroup(cgrp))
		group->active.weight = weight_of_idle(true);
	group->depth = above->depth + 1;
	group->steered = above->steered || bpf_map_lookup_elem(&steered_cgroups, &id) != NULL;
	level = bpf_map_lookup_elem(&disclosure_cgroups, &id);
	group->disclosure = level ? *level + 1 : above->disclosure;
	set_quota(group, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

SEC("struct_ops.s/cgroup_exit")
void BPF_PROG(steer_cgroup_exit, struct cgroup *cgrp)
{
	u64 id = BPF_CORE_READ(cgrp, kn, id);
	u32 *found = own_index_of(cgrp), index;
	struct group *group;

	if (!found)
		return;
	index = *found;
	group = group_at(index);
	if (group)
		set_quota(group, 0, STEER_NO_QUOTA, 0);
	bpf_map_delete_elem(&group_of_cgroup, &id);
	bpf_map_push_elem(&free_groups, &index, 0);
}

SEC("struct_ops/cgroup_move")
void BPF_PROG(steer_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_context *task = context_of(p);
	u32 counted;

	if (!task)
		return;
	counted = task->counted;
	count_weight(task, 0);
	task->group = index_of(to);
	count_weight(task, counted);
}

SEC("struct_ops/cgroup_set_weight")
void BPF_PROG(steer_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct group *group = own_group_of(cgrp);

	if (group)
		set_group_weight(group, unspin_weight_of_cgroup(weight));
}

SEC("struct_ops/cgroup_set_idle")
void BPF_PROG(steer_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	struct group *group = own_group_of(cgrp);

	if (group)
		set_group_weight(group, weight_of_idle(idle));
}

/* cpu.max or cpu.max.burst is written. A quota that cannot be kept is not ignored: the scheduler ends. */
SEC("struct_ops/cgroup_set_bandwidth")
void BPF_PROG(steer_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	static char says[] =
		"cpu.max was set on the cgroup with inode %llu, too deep or one of too many: unspin would ignore it";
	unsigned long long id = BPF_CORE_READ(cgrp, kn, id);
	struct group *group = own_group_of(cgrp);

	if (group)
		set_quota(group, period_us, quota_us, burst_us);
	else if (quota_us != STEER_NO_QUOTA)
		scx_bpf_exit_bstr(1, says, &id, sizeof(id));
}

#endif
