/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * bandwidth.h - cpu.max of a cgroup: how much of its quota is left, and until when its tasks are throttled.
 *
 * As the fair class has it (CFS bandwidth control, Documentation/scheduler/sched-bwc.rst, Linux 7.2): a cgroup and all below it run
 * for `quota_ns` in each period of `period_ns`; what they leave over is saved up to `burst_ns`. Each cgroup above that has a quota is
 * charged as well. Unlike there, no CPU takes a part of the quota in advance: what tasks ran is charged when it is known, at the end
 * of a slice or at a tick. What they ran beyond their quota is a debt that the next periods pay. So a cgroup runs for its quota
 * in the long run, and by one slice of each CPU more at most in any one period.
 *
 * A period is refilled by whoever looks first after its end (no timer of its own), and the caller adds the change atomically: CPUs that
 * charge meanwhile lose nothing. Times are ns of one clock, less than 2^63 apart. Callable from anywhere.
 */
#ifndef UNSPIN_POLICY_MECHANICS_BANDWIDTH_H
#define UNSPIN_POLICY_MECHANICS_BANDWIDTH_H

#include "virtual_time.h"

/* Of a cgroup without a quota. */
#define UNSPIN_NO_QUOTA 0u
/* A quota above this limits nobody: 4,398 CPUs in a period of 1 s, the longest (max_bw_quota_period_us, kernel/sched/core.c, Linux 7.2). */
#define UNSPIN_LARGEST_QUOTA_NS (1ull << 42)
/* More periods than that are refilled as so many: 2^42 * 2^16 is below 2^59. */
#define UNSPIN_MOST_PERIODS (1ull << 16)
/* No slice is cut shorter for what is left of a quota: a switch costs microseconds. The rest is a debt. Ours. */
#define UNSPIN_LEAST_THROTTLED_SLICE_NS 100000ull
/*
 * A task is not throttled for longer, whatever its cgroup owes: it runs for the shortest slice, and that is charged. The kernel's
 * watchdog removes a scheduler that has left a task waiting for 5 s, and a small quota for many tasks would do it. Ours.
 */
#define UNSPIN_LONGEST_THROTTLED_NS 2000000000ull

/* One cgroup's; all 0: it has no quota. */
struct unspin_bandwidth {
	unspin_u64 quota_ns;  /* in a period; UNSPIN_NO_QUOTA: none */
	unspin_u64 period_ns; /* 1 or more where there is a quota */
	unspin_u64 burst_ns;
	unspin_s64 left_ns;   /* of the quota and what was saved; 0 or less: its tasks are throttled */
	unspin_u64 refill_ns; /* when the next period begins */
};
UNSPIN_ASSERT_SIZE(struct unspin_bandwidth, 40);

UNSPIN_PURE unspin_u64 unspin_quota_ns(unspin_u64 us)
{
	return us > UNSPIN_LARGEST_QUOTA_NS / 1000 ? UNSPIN_LARGEST_QUOTA_NS : us * 1000;
}

/*
 * cpu.max and cpu.max.burst are written: `quota_us` and `period_us` 1 or more. A first quota begins with a whole period; one that is
 * changed keeps what is left or owed, so that writing it again and again gives no time.
 */
UNSPIN_PURE void unspin_set_bandwidth(struct unspin_bandwidth *bandwidth, unspin_u64 quota_us, unspin_u64 period_us,
				      unspin_u64 burst_us, unspin_u64 now_ns)
{
	_Bool first = bandwidth->quota_ns == UNSPIN_NO_QUOTA;
	unspin_s64 most_ns;

	bandwidth->period_ns = unspin_quota_ns(period_us);
	bandwidth->burst_ns = unspin_quota_ns(burst_us);
	if (!bandwidth->period_ns)
		bandwidth->period_ns = 1000;
	if (first || unspin_before(now_ns + bandwidth->period_ns, bandwidth->refill_ns))
		bandwidth->refill_ns = now_ns + bandwidth->period_ns;
	bandwidth->quota_ns = unspin_quota_ns(quota_us);
	most_ns = (unspin_s64)(bandwidth->quota_ns + bandwidth->burst_ns);
	if (first)
		bandwidth->left_ns = (unspin_s64)bandwidth->quota_ns;
	else if (bandwidth->left_ns > most_ns)
		bandwidth->left_ns = most_ns;
}

/* The periods of `period_ns` (1 or more) that have ended by now, of which the first ends at `refill_ns`. */
UNSPIN_PURE unspin_u64 unspin_periods_over(unspin_u64 refill_ns, unspin_u64 period_ns, unspin_u64 now_ns)
{
	return unspin_before(now_ns, refill_ns) ? 0 : (now_ns - refill_ns) / period_ns + 1;
}

/* What so many new periods (1 or more) change `left_ns` by. */
UNSPIN_PURE unspin_s64 unspin_refill(unspin_s64 left_ns, unspin_u64 quota_ns, unspin_u64 burst_ns, unspin_u64 periods)
{
	unspin_s64 most_ns = (unspin_s64)(quota_ns + burst_ns), more_ns;

	if (periods > UNSPIN_MOST_PERIODS)
		periods = UNSPIN_MOST_PERIODS;
	more_ns = (unspin_s64)(quota_ns * periods);
	return left_ns + more_ns > most_ns ? most_ns - left_ns : more_ns;
}

/*
 * When a cgroup that has nothing left has some again: in the first period that pays its debt. `left_ns` is 0 or less; `quota_ns` and
 * `period_ns` 1 or more.
 */
UNSPIN_PURE unspin_u64 unspin_throttled_until(unspin_s64 left_ns, unspin_u64 quota_ns, unspin_u64 period_ns,
					      unspin_u64 refill_ns)
{
	unspin_u64 periods = (unspin_u64)-left_ns / quota_ns;

	if (periods > UNSPIN_MOST_PERIODS)
		periods = UNSPIN_MOST_PERIODS;
	return refill_ns + periods * period_ns;
}

/* How long a slice of `slice_ns` lasts where so much of the quota is left. */
UNSPIN_PURE unspin_u64 unspin_slice_in_quota(unspin_u64 slice_ns, unspin_s64 left_ns)
{
	unspin_u64 least_ns = slice_ns < UNSPIN_LEAST_THROTTLED_SLICE_NS ? slice_ns : UNSPIN_LEAST_THROTTLED_SLICE_NS;

	if (left_ns >= (unspin_s64)slice_ns)
		return slice_ns;
	return left_ns > (unspin_s64)least_ns ? (unspin_u64)left_ns : least_ns;
}

/* Whether a task that has been throttled since then (0: it is not) runs, whatever its cgroup owes. */
UNSPIN_PURE _Bool unspin_throttled_too_long(unspin_u64 since_ns, unspin_u64 now_ns)
{
	return since_ns && !unspin_before(now_ns, since_ns + UNSPIN_LONGEST_THROTTLED_NS);
}

/* When a throttled task is looked at again. */
UNSPIN_PURE unspin_u64 unspin_throttle_ends(unspin_u64 until_ns, unspin_u64 since_ns)
{
	unspin_u64 latest_ns = since_ns + UNSPIN_LONGEST_THROTTLED_NS;

	return unspin_before(latest_ns, until_ns) ? latest_ns : until_ns;
}

#endif
