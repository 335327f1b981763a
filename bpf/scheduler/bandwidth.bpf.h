/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bandwidth.bpf.h - what cpu.max leaves a task, by the rules of policy/mechanics/bandwidth.h: the walks up the levels of cgroups. A
 * host without quotas reads `quotas` and does nothing.
 */
#ifndef UNSPIN_BPF_SCHEDULER_BANDWIDTH_H
#define UNSPIN_BPF_SCHEDULER_BANDWIDTH_H

#include "virtual_time.bpf.h"

#define S64_MAX 0x7fffffffffffffffll

u32 quotas; /* cgroups that have one */

/* What the quotas of a task's cgroup and of those above leave it. */
struct quotas_above {
	s64 left_ns;  /* the least; S64_MAX: there is no quota */
	u64 until_ns; /* when all have some left; 0: they have */
};

/* Refills it if a period is over. Of CPUs that see that at once, one does. Returns what is left. */
static __always_inline s64 left_of(struct unspin_bandwidth *bandwidth, u64 now_ns)
{
	u64 refill_ns = *(volatile u64 *)&bandwidth->refill_ns, period_ns = bandwidth->period_ns, periods;

	if (!period_ns)
		return S64_MAX;
	periods = unspin_periods_over(refill_ns, period_ns, now_ns);
	if (periods && __sync_bool_compare_and_swap(&bandwidth->refill_ns, refill_ns, refill_ns + periods * period_ns))
		__sync_fetch_and_add(&bandwidth->left_ns, unspin_refill(bandwidth->left_ns, bandwidth->quota_ns,
									bandwidth->burst_ns, periods));
	return *(volatile s64 *)&bandwidth->left_ns;
}

static __always_inline struct quotas_above quotas_above(u32 index, u64 now_ns)
{
	struct quotas_above found = {.left_ns = S64_MAX};
	int depth;

	bpf_for(depth, 0, (int)UNSPIN_DEEPEST_GROUP)
	{
		struct group *group = group_at(index);
		u64 quota_ns, until_ns;
		s64 left_ns;

		if (!group || index == ROOT_GROUP)
			break;
		index = group->parent;
		quota_ns = group->bandwidth.quota_ns;
		if (quota_ns == UNSPIN_NO_QUOTA)
			continue;
		left_ns = left_of(&group->bandwidth, now_ns);
		if (left_ns < found.left_ns)
			found.left_ns = left_ns;
		if (left_ns > 0)
			continue;
		until_ns = unspin_throttled_until(left_ns, quota_ns, group->bandwidth.period_ns,
						  group->bandwidth.refill_ns);
		if (!found.until_ns || unspin_before(found.until_ns, until_ns))
			found.until_ns = until_ns;
	}
	return found;
}

/*
 * When the quotas of a task of that group are refilled; 0: they leave it some. These walks are not inlined, and not static: the
 * verifier goes through them once.
 */
__attribute__((noinline)) u64 throttled_until(u32 index, u64 now_ns)
{
	return quotas ? quotas_above(index, now_ns).until_ns : 0;
}

/* How long a slice of that length lasts within them. */
__attribute__((noinline)) u64 slice_under_quotas(u32 index, u64 slice_ns, u64 now_ns)
{
	return unspin_slice_in_quota(slice_ns, quotas_above(index, now_ns).left_ns);
}

/* The same; a host without quotas pays for no call, here and below. */
static __always_inline u64 slice_in_quotas(u32 index, u64 slice_ns, u64 now_ns)
{
	return quotas ? slice_under_quotas(index, slice_ns, now_ns) : slice_ns;
}

/* Whether a task of that group which has run for so long without being charged for it has used up what they leave: 1 or 0. */
__attribute__((noinline)) int uses_up_quotas(u32 index, u64 uncharged_ns, u64 now_ns)
{
	s64 left_ns = quotas ? quotas_above(index, now_ns).left_ns : S64_MAX;

	return left_ns != S64_MAX && left_ns <= (s64)uncharged_ns;
}

/* A task of that group has run for so long. Returns 0. */
__attribute__((noinline)) int charge_each_quota(u32 index, u64 ran_ns)
{
	int depth;

	bpf_for(depth, 0, (int)UNSPIN_DEEPEST_GROUP)
	{
		struct group *group = group_at(index);

		if (!group || index == ROOT_GROUP)
			return 0;
		if (group->bandwidth.quota_ns != UNSPIN_NO_QUOTA)
			__sync_fetch_and_add(&group->bandwidth.left_ns, -ran_ns);
		index = group->parent;
	}
	return 0;
}

static __always_inline void charge_quotas(u32 index, u64 ran_ns)
{
	if (quotas)
		charge_each_quota(index, ran_ns);
}

static __always_inline bool is_throttled(const struct task_context *task, u64 now_ns)
{
	return throttled_until(task->group, now_ns);
}

/* Any quota at all: uncharged for longer than any period, a task has used it up. */
static __always_inline bool has_quota(const struct task_context *task, u64 now_ns)
{
	return uses_up_quotas(task->group, S64_MAX, now_ns);
}

#endif
