/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steer_time.bpf.h - virtual time: how far each task has come, and how far all have come together.
 *
 * "Now" is the average vtime of all tasks that want a CPU, by weight, as in avg_vruntime() of the kernel's own scheduler
 * (kernel/sched/fair.c, Linux 7.2). The vtime of the one that runs will not do: a light task that has a CPU for itself
 * (pinned there, or the only one left) runs ahead of all others by its weight, and whoever wakes up then and is placed
 * beside it waits until the others have come that far. Seen under stress-ng: a sleeper was 677 ms late, 20 ms with the
 * kernel's scheduler.
 *
 * No task is further from it than it can have earned in its longest turns: what it ran while nobody else wanted that CPU
 * was nobody else's loss, and credit that a sleeper has saved is bounded as well.
 *
 * The average is kept, never computed over tasks: the sum of weight * (vtime - now) and that of weights, under a lock.
 */
#ifndef UNSPIN_BPF_STEER_TIME_H
#define UNSPIN_BPF_STEER_TIME_H

#include "steer_weights.bpf.h"

/* Beyond the slice: a turn ends at the first tick after it, 10 ms at CONFIG_HZ=100, and a grace may follow. */
#define TURN_MORE_NS 12000000ull
/*
 * Keep the sums below 2^63: weight times distance is below 2^55 with slices of 100 ms, so 2^47 a task; where the shifted
 * weight is rounded up to 1, no distance is above 2^44, 5 hours.
 */
#define PART_SHIFT 8u
#define FARTHEST_NS (1ull << 44)

struct virtual_time {
	struct bpf_spin_lock lock;
	u32 reserved;
	u64 now_ns;
	s64 weights; /* of those that want a CPU, >> PART_SHIFT each */
	s64 ahead;   /* sum of weight * (vtime - now_ns) */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct virtual_time);
} virtual_time SEC(".maps");

static __always_inline struct virtual_time *time_of_all(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&virtual_time, &zero);
}

static __always_inline u64 now_vtime(void)
{
	const volatile struct virtual_time *all = time_of_all();

	return all ? all->now_ns : 0;
}

/* Moves "now" to where the average is. Called with the lock held. */
static __always_inline void advance(struct virtual_time *all)
{
	u64 far = all->ahead < 0 ? -all->ahead : all->ahead, steps;

	if (all->weights <= 0) {
		all->ahead = 0;
		return;
	}
	/* BPF divides unsigned numbers only. */
	steps = far / (u64)all->weights;
	if (all->ahead < 0) {
		all->now_ns -= steps;
		all->ahead += steps * all->weights;
	} else {
		all->now_ns += steps;
		all->ahead -= steps * all->weights;
	}
}

/* No further from now than `most_ns` either way. */
static __always_inline u64 near(u64 vtime_ns, u64 now_ns, u64 most_ns)
{
	if (before(vtime_ns, now_ns - most_ns))
		return now_ns - most_ns;
	if (before(now_ns + most_ns, vtime_ns))
		return now_ns + most_ns;
	return vtime_ns;
}

/* The task has run so much more; its weight counts as it is now, or, when it wants no CPU any more, not at all. */
static __always_inline void come_along(struct task_context *task, u64 ran_ns, bool wants)
{
	struct virtual_time *all = time_of_all();
	u64 weight = effective_weight(task), vtime_ns, most_ns;
	u32 part;

	if (!all)
		return;
	ran_ns += __sync_lock_test_and_set(&task->debt_ns, 0);
	vtime_ns = task->vtime_ns + weighted(weight, ran_ns);
	most_ns = weighted(weight, 2 * options.slice_ns + TURN_MORE_NS);
	if (most_ns > FARTHEST_NS)
		most_ns = FARTHEST_NS;
	part = wants ? (weight >> PART_SHIFT) + 1 : 0; /* weights are below 2^34 */
	bpf_spin_lock(&all->lock);
	all->ahead -= task->part * (s64)(task->vtime_ns - all->now_ns);
	all->weights -= task->part;
	vtime_ns = near(vtime_ns, all->now_ns, most_ns);
	all->ahead += part * (s64)(vtime_ns - all->now_ns);
	all->weights += part;
	advance(all);
	bpf_spin_unlock(&all->lock);
	task->vtime_ns = vtime_ns;
	task->part = part;
}

#endif
