/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * weights.h - what a task's time costs it: nice and nested cgroup weights as one number.
 *
 * Each group knows the sum of the weights that want to run in it: its own tasks' and its active children's. A task's share
 * is its weight over that sum, times the same of its group in the parent, and so on up. Only the product below the root
 * matters, so all tasks lie in one order (the idea of tools/sched_ext/scx_flatcg.bpf.c, carried down to the task; Linux
 * 7.2). The caller walks up the levels; nothing is ever walked down, and no task is searched for.
 *
 * A child's weight enters its parent's sum when its own sum becomes positive and leaves when it does not. Two CPUs may
 * carry opposite changes up in either order: sums are signed, and what was carried is kept.
 */
#ifndef UNSPIN_POLICY_MECHANICS_WEIGHTS_H
#define UNSPIN_POLICY_MECHANICS_WEIGHTS_H

#include "../contract.h"

/*
 * Weights are those of the fair class: 1024 is nice 0 (NICE_0_LOAD without the kernel's resolution shift, kernel/sched/sched.h,
 * Linux 7.2). sched_ext says them in hundredths of nice 0: nice 6 is 27 there, 1.6 % off, and nice 19 is 1 instead of 1.46.
 */
#define UNSPIN_NICE_0_WEIGHT 1024u
/* Of SCHED_IDLE: WEIGHT_IDLEPRIO, kernel/sched/sched.h, Linux 7.2. */
#define UNSPIN_IDLE_WEIGHT 3u
/* Binary places of a share: an effective weight of nice 0 at the root is UNSPIN_NICE_0_WEIGHT << UNSPIN_WEIGHT_SHIFT. Ours. */
#define UNSPIN_WEIGHT_SHIFT 18u
/* Levels of cgroups below the root that count; what lies deeper counts as its parent. Ours. */
#define UNSPIN_DEEPEST_GROUP 15u
/* No charge is for more: 10^10 * (1024 << 18) is below 2^62. Ours. */
#define UNSPIN_LONGEST_RUN_NS 10000000000ull

/* One group. The root's weight and contribution mean nothing. */
struct unspin_group_weight {
	unspin_s64 sum;		 /* of the weights of what is runnable here */
	unspin_u32 weight;	 /* of unspin_weight_of_cgroup() */
	unspin_u32 contribution; /* of it in the parent's sum now: weight or 0 */
};
UNSPIN_ASSERT_SIZE(struct unspin_group_weight, 16);

/* The sum changes by so much; returns what the parent's sum changes by. The caller keeps others from the group meanwhile. */
UNSPIN_PURE unspin_s64 unspin_group_add(struct unspin_group_weight *group, unspin_s64 change)
{
	unspin_s64 carried = 0;

	group->sum += change;
	if (group->sum > 0 && !group->contribution) {
		group->contribution = group->weight;
		carried = group->weight;
	} else if (group->sum <= 0 && group->contribution) {
		carried = -(unspin_s64)group->contribution;
		group->contribution = 0;
	}
	return carried;
}

/* Its weight becomes that, also while the group is active; returns what the parent's sum changes by. As above. */
UNSPIN_PURE unspin_s64 unspin_group_set_weight(struct unspin_group_weight *group, unspin_u32 weight)
{
	unspin_s64 carried = 0;

	group->weight = weight;
	if (group->contribution) {
		carried = (unspin_s64)weight - group->contribution;
		group->contribution = weight;
	}
	return carried;
}

/* The weight of a nice value, -20 to 19, others as the nearest: sched_prio_to_weight[], kernel/sched/core.c, Linux 7.2. */
UNSPIN_PURE unspin_u32 unspin_weight_of_nice(int nice)
{
	static const unspin_u32 weights[40] = {
		88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
		3906,  3121,  2501,  1991,  1586,  1277,  1024,	 820,	655,   526,   423,  335,  272,	215,
		172,   137,   110,   87,    70,	   56,	  45,	 36,	29,    23,    18,   15,
	};
	unspin_u32 place = nice < -20 ? 0 : nice > 19 ? 39 : (unspin_u32)(nice + 20);

	return weights[place];
}

/* The weight of a cgroup with that cpu.weight, 1 to 10,000: sched_weight_from_cgroup(), kernel/sched/sched.h, Linux 7.2. */
UNSPIN_PURE unspin_u32 unspin_weight_of_cgroup(unspin_u32 cpu_weight)
{
	return (unspin_u32)(((unspin_u64)cpu_weight * UNSPIN_NICE_0_WEIGHT + 50) / 100);
}

/* What a task of that weight weighs in its own group: where the walk up begins. */
UNSPIN_PURE unspin_u64 unspin_weight_of_task(unspin_u32 own_weight)
{
	return (unspin_u64)own_weight << UNSPIN_WEIGHT_SHIFT;
}

/* What weighs so much in a group weighs this in the parent; a sum of 0 or less is just changing, and means nothing. */
UNSPIN_PURE unspin_u64 unspin_weight_in_parent(unspin_u64 weight, unspin_u32 group_weight, unspin_s64 sum)
{
	/* 88,761 << 18, times 102,400: below 2^52. */
	return sum > 0 ? weight * group_weight / (unspin_u64)sum : weight;
}

/* The effective weight at the end of the walk: 1 or more. */
UNSPIN_PURE unspin_u64 unspin_weight_among_all(unspin_u64 weight)
{
	return weight ? weight : 1;
}

/* What so much time on a CPU costs a task of that effective weight (1 or more), in weighted ns: for nice 0 at the root, itself. */
UNSPIN_PURE unspin_u64 unspin_weighted(unspin_u64 weight, unspin_u64 ran_ns)
{
	if (ran_ns > UNSPIN_LONGEST_RUN_NS)
		ran_ns = UNSPIN_LONGEST_RUN_NS;
	return ran_ns * ((unspin_u64)UNSPIN_NICE_0_WEIGHT << UNSPIN_WEIGHT_SHIFT) / weight;
}

#endif
