/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weights.bpf.h - what a task's time costs it: nice and nested cgroup weights as one number.
 *
 * Each group knows the sum of the weights that want to run in it: its own tasks' and its active children's. A task's share
 * is its weight over that sum, times the same of its group in the parent, and so on up. Only the product below the root
 * matters, so all tasks lie in one order (the idea of tools/sched_ext/scx_flatcg.bpf.c, carried down to the task; Linux
 * 7.2). The walk goes up the levels of cgroups, 15 at most; nothing is ever walked down, and no task is looked at.
 *
 * A child's weight enters its parent's sum when its own sum becomes positive and leaves when it does not. Two CPUs may
 * carry opposite changes up in either order: sums are signed, and what was carried is remembered under the group's lock.
 */
#ifndef UNSPIN_BPF_SCHEDULER_WEIGHTS_H
#define UNSPIN_BPF_SCHEDULER_WEIGHTS_H

#include "state.bpf.h"
#include "../common/disclosure_maps.bpf.h"

#define ROOT_GROUP 0u
#define DEEPEST_GROUP 15u
#define NICE_0_WEIGHT 100u /* of sched_ext and cgroup v2 alike */
#define WEIGHT_SHIFT 20u   /* binary places of a share */
#define LONGEST_RUN_NS 10000000000ull

struct group {
	struct bpf_spin_lock lock;
	u32 parent;
	s64 sum;	  /* of weights that want to run here */
	u32 weight;	  /* cpu.weight */
	u32 contribution; /* of it in the parent's sum now: weight or 0 */
	u32 depth;	  /* 0 at the root */
	u32 steered;
	u32 disclosure; /* enum unspin_disclosure + 1; 0: not said */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* Indices of `groups` that nobody uses; filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1); /* set by the loader */
	__uint(key_size, 0);
	__uint(value_size, sizeof(u32));
} free_groups SEC(".maps");

/* A cgroup's group by its inode number: an own one, or its parent's when there was none left. */
struct group_of_cgroup {
	u32 index;
	u32 owns;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, u64);
	__type(value, struct group_of_cgroup);
} group_of_cgroup SEC(".maps");

/* Cgroups that policies touch, with all below them, by inode number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} steered_cgroups SEC(".maps");

static __always_inline struct group *group_at(u32 index)
{
	/* In bounds: the array map refuses an index beyond its end. */
	return bpf_map_lookup_elem(&groups, &index);
}

/* Safe reads: a cgroup that is going away gives a number that nobody has. */
static __always_inline u32 index_of(struct cgroup *cgrp)
{
	u64 id = BPF_CORE_READ(cgrp, kn, id);
	struct group_of_cgroup *found = bpf_map_lookup_elem(&group_of_cgroup, &id);

	return found ? found->index : ROOT_GROUP;
}

/* Adds to the sum of a group; returns what its parent's sum changes by. */
static __always_inline s64 add_to_group(struct group *group, s64 change)
{
	s64 carried = 0;

	bpf_spin_lock(&group->lock);
	group->sum += change;
	if (group->sum > 0 && !group->contribution) {
		group->contribution = group->weight;
		carried = group->weight;
	} else if (group->sum <= 0 && group->contribution) {
		carried = -(s64)group->contribution;
		group->contribution = 0;
	}
	bpf_spin_unlock(&group->lock);
	return carried;
}

/*
 * The weights that want to run in that group change by so much. Returns 0. This walk and the other are not inlined, and not
 * static: the verifier goes through them once.
 */
__attribute__((noinline)) int change_sums(u32 index, s64 change)
{
	for (u32 depth = 0; depth <= DEEPEST_GROUP && change; depth++) {
		struct group *group = group_at(index);

		if (!group)
			return 0;
		change = add_to_group(group, change);
		if (index == ROOT_GROUP)
			return 0;
		index = group->parent;
	}
	return 0;
}

/* A task begins (weight above 0) or ceases (0) to want a CPU. */
static __always_inline void count_weight(struct task_context *task, u32 weight)
{
	s64 change = (s64)weight - task->counted;

	task->counted = weight;
	if (change)
		change_sums(task->group, change);
}

/* What a task of that weight in that group weighs among all, NICE_0_WEIGHT << WEIGHT_SHIFT for nice 0 at the root; at least 1. */
__attribute__((noinline)) u64 weight_among_all(u32 own_weight, u32 index)
{
	u64 weight = (u64)own_weight << WEIGHT_SHIFT; /* 10,000 << 20, times 10,000: below 2^47 */

	for (u32 depth = 0; depth <= DEEPEST_GROUP && index != ROOT_GROUP; depth++) {
		struct group *group = group_at(index);
		s64 sum;

		if (!group)
			break;
		sum = *(volatile s64 *)&group->sum;
		if (sum > 0)
			weight = weight * group->weight / (u64)sum;
		index = group->parent;
	}
	return weight ? weight : 1;
}

static __always_inline u64 effective_weight(const struct task_context *task)
{
	return weight_among_all(task->weight, task->group);
}

/* What so much time on a CPU costs a task of that effective weight, in weighted ns. */
static __always_inline u64 weighted(u64 weight, u64 ran_ns)
{
	if (ran_ns > LONGEST_RUN_NS)
		ran_ns = LONGEST_RUN_NS; /* 10^10 * 100 << 20 is below 2^60 */
	return ran_ns * ((u64)NICE_0_WEIGHT << WEIGHT_SHIFT) / weight;
}

/* cpu.weight of a group changes, also while it is active. */
static __always_inline void set_group_weight(struct group *group, u32 weight)
{
	s64 carried = 0;
	u32 parent = group->parent;

	bpf_spin_lock(&group->lock);
	group->weight = weight;
	if (group->contribution) {
		carried = (s64)weight - group->contribution;
		group->contribution = weight;
	}
	bpf_spin_unlock(&group->lock);
	if (carried)
		change_sums(parent, carried);
}

#endif
