/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weights.bpf.h - the weights of tasks and cgroups, by the rules of policy/mechanics/weights.h: here are the maps, the locks and
 * the walks up the levels of cgroups, UNSPIN_DEEPEST_GROUP at most.
 */
#ifndef UNSPIN_BPF_SCHEDULER_WEIGHTS_H
#define UNSPIN_BPF_SCHEDULER_WEIGHTS_H

#include "state.bpf.h"
#include "../common/disclosure_maps.bpf.h"
#include "../../policy/mechanics/bandwidth.h"
#include "../../policy/mechanics/weights.h"

#define ROOT_GROUP 0u

struct group {
	struct bpf_spin_lock lock; /* of `active` */
	u32 parent;
	struct unspin_group_weight active;
	u32 depth; /* 0 at the root */
	u32 steered;
	u32 disclosure; /* enum unspin_disclosure + 1; 0: not set */
	struct unspin_bandwidth bandwidth;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* Indices of `groups` that are free; filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1); /* set by the loader */
	__uint(key_size, 0);
	__uint(value_size, sizeof(u32));
} free_groups SEC(".maps");

/* The group of each cgroup that has one of its own, by its inode number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, u64);
	__type(value, u32);
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

/* The index of its own group; NULL: it has none, because it lies too deep, or there was none left. */
static __always_inline u32 *own_index_of(struct cgroup *cgrp)
{
	u64 id = BPF_CORE_READ(cgrp, kn, id);

	return bpf_map_lookup_elem(&group_of_cgroup, &id);
}

/* That group itself; NULL as above. */
static __always_inline struct group *own_group_of(struct cgroup *cgrp)
{
	u32 *index = own_index_of(cgrp);

	return index ? group_at(*index) : NULL;
}

#define MOST_LEVELS 256u /* of cgroups that are walked up; a path has 4096 bytes at most */

/*
 * A cgroup's group: its own, or that of the nearest one above that has one. Safe reads: a cgroup that is going away gives a
 * number that no cgroup has.
 */
static __always_inline u32 index_of(struct cgroup *cgrp)
{
	u32 level;

	bpf_for(level, 0, MOST_LEVELS)
	{
		u32 *index;

		if (!cgrp)
			break;
		index = own_index_of(cgrp);
		if (index)
			return *index;
		cgrp = BPF_CORE_READ(cgrp, self.parent, cgroup);
	}
	return ROOT_GROUP;
}

/* Adds to the sum of a group; returns what its parent's sum changes by. */
static __always_inline s64 add_to_group(struct group *group, s64 change)
{
	s64 carried;

	bpf_spin_lock(&group->lock);
	carried = unspin_group_add(&group->active, change);
	bpf_spin_unlock(&group->lock);
	return carried;
}

/*
 * The weights that are runnable in that group change by so much. Returns 0. This walk and the other are not inlined, and not
 * static: the verifier goes through them once.
 */
__attribute__((noinline)) int change_sums(u32 index, s64 change)
{
	for (u32 depth = 0; depth <= UNSPIN_DEEPEST_GROUP && change; depth++) {
		struct group *group = group_at(index);

		if (!group)
			return 0;
		if (index == ROOT_GROUP) { /* it has no part in another sum, so it needs no lock */
			__sync_fetch_and_add(&group->active.sum, change);
			return 0;
		}
		change = add_to_group(group, change);
		index = group->parent;
	}
	return 0;
}

/* A task becomes runnable (weight above 0) or ceases to be (0). */
static __always_inline void count_weight(struct task_context *task, u32 weight)
{
	s64 change = (s64)weight - task->counted;

	task->counted = weight;
	if (change)
		change_sums(task->group, change);
}

/* What a task of that weight in that group weighs among all: policy/mechanics/weights.h. */
__attribute__((noinline)) u64 weight_among_all(u32 own_weight, u32 index)
{
	u64 weight = unspin_weight_of_task(own_weight);

	for (u32 depth = 0; depth <= UNSPIN_DEEPEST_GROUP && index != ROOT_GROUP; depth++) {
		struct group *group = group_at(index);

		if (!group)
			break;
		/* Without the lock: the sum is read once. */
		weight = unspin_weight_in_parent(weight, group->active.weight, *(volatile s64 *)&group->active.sum);
		index = group->parent;
	}
	return unspin_weight_among_all(weight);
}

static __always_inline u64 effective_weight(const struct task_context *task)
{
	return weight_among_all(task->weight, task->group);
}

/* cpu.weight of a group changes, also while it is active. */
static __always_inline void set_group_weight(struct group *group, u32 weight)
{
	u32 parent = group->parent;
	s64 carried;

	bpf_spin_lock(&group->lock);
	carried = unspin_group_set_weight(&group->active, weight);
	bpf_spin_unlock(&group->lock);
	if (carried)
		change_sums(parent, carried);
}

#endif
