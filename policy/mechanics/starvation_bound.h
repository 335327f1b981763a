/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * starvation_bound.h - a bound on how long a task of little weight may wait.
 *
 * A slice of 4 ms takes a task of SCHED_IDLE (weight 3) 1.4 s of virtual time ahead, and with twenty tasks of nice 0 for
 * each CPU the clocks come 50 ms further in a second: it is due in 27 s, in cgroups of little weight in minutes. The
 * kernel's watchdog removes a scheduler that has left a task waiting for 5 s, so no task is left further ahead than the clocks
 * come in UNSPIN_LONGEST_WAIT_NS at their present rate. Only the last UNSPIN_LAST_COMPARED tasks of each queue are compared, so
 * nothing is searched for: a task that is too far ahead is brought forward, and then others are the last. So each such task gets a slice in two
 * seconds, 0.2 to 0.3 % of a CPU, although its weight gives it less.
 *
 * A task may also be far ahead for a weight that it has no more: it ran beside a heavy sibling of its cgroup, which sleeps or is
 * throttled since. What it is ahead is then scaled as reweight_entity() scales a lag (kernel/sched/fair.c, Linux 7.2), for the last tasks of
 * each queue: beside a throttled sibling a pod of weight 1 had 0.003 of a CPU instead of 0.08.
 *
 * A shared clock stands while CPUs serve their own queues, and a CPU may be behind others that serve the shared one: tasks that
 * wait in that are bounded by the clock that is further and faster.
 */
#ifndef UNSPIN_POLICY_MECHANICS_STARVATION_BOUND_H
#define UNSPIN_POLICY_MECHANICS_STARVATION_BOUND_H

#include "virtual_time.h"

/* Less than half of what the watchdog leaves: more tasks may come meanwhile, and slow the clocks down. Ours. */
#define UNSPIN_LONGEST_WAIT_NS 2000000000ull
/* How often paces are measured and the last of a queue is looked at: a CPU's slices are even over so many. Ours. */
#define UNSPIN_BOUND_PERIOD_NS 64000000ull
/* Tasks of each queue that are looked at. Ours. */
#define UNSPIN_LAST_COMPARED 8u
/* A clock that comes further than that in a period was advanced by a task that is alone: farther than any wait. Ours. */
#define UNSPIN_FARTHEST_NS (1ull << 40)

/* How fast a clock goes; zero at first. */
struct unspin_clock_rate {
	unspin_u64 since_ns;   /* when it was measured last */
	unspin_u64 from_ns;    /* where the clock was then */
	unspin_u64 in_time_ns; /* how far it comes in the longest wait */
};
UNSPIN_ASSERT_SIZE(struct unspin_clock_rate, 24);

/* Whether it is time to measure a rate that was measured last at since_ns; both are times of one clock that never goes back. */
UNSPIN_PURE _Bool unspin_rate_is_due(unspin_u64 since_ns, unspin_u64 now_ns)
{
	return !unspin_before(now_ns, since_ns + UNSPIN_BOUND_PERIOD_NS);
}

/*
 * Measures a rate that is due; `since_ns`: when it was measured last, which the caller has replaced by now_ns already, so that of
 * several CPUs one does. Returns whether the rate is known: false where the clock was idle.
 */
UNSPIN_PURE _Bool unspin_measure_rate(struct unspin_clock_rate *rate, unspin_u64 since_ns, unspin_u64 clock_ns,
				      unspin_u64 now_ns)
{
	unspin_u64 elapsed_ns = now_ns - since_ns, come_ns = 0;

	if (unspin_before(rate->from_ns, clock_ns))
		come_ns = clock_ns - rate->from_ns;
	rate->from_ns = clock_ns;
	if (come_ns > UNSPIN_FARTHEST_NS)
		come_ns = UNSPIN_FARTHEST_NS;
	if (elapsed_ns < UNSPIN_BOUND_PERIOD_NS || elapsed_ns > 4 * UNSPIN_BOUND_PERIOD_NS) {
		rate->in_time_ns = UNSPIN_FARTHEST_NS;
		return 0;
	}
	/* 2^40 * 2,000 is below 2^51. */
	rate->in_time_ns = come_ns * (UNSPIN_LONGEST_WAIT_NS / 1000000) / (elapsed_ns / 1000000);
	return 1;
}

/* How far ahead a task may wait, by a rate's in_time_ns. No task of nice 0 is brought forward, however many there are. */
UNSPIN_PURE unspin_u64 unspin_farthest_ahead(unspin_u64 in_time_ns, unspin_u64 slice_ns)
{
	return in_time_ns > unspin_plain_reach(slice_ns) ? in_time_ns : unspin_plain_reach(slice_ns);
}

/* The vtime of a task that waits, and was charged by an effective weight which has become twice as much or more since. */
UNSPIN_PURE unspin_u64 unspin_reweighted_vtime(unspin_u64 vtime_ns, unspin_u64 clock_ns, unspin_u64 charged_weight,
					       unspin_u64 weight)
{
	if (weight / 2 < charged_weight || !unspin_before(clock_ns, vtime_ns))
		return vtime_ns;
	return clock_ns + (vtime_ns - clock_ns) / (weight / charged_weight);
}

/* The latest vtime in a CPU's queue; `front_ns`: the position of the last task that was first there. */
UNSPIN_PURE unspin_u64 unspin_latest_own(unspin_u64 front_ns, unspin_u64 ahead_ns, unspin_u64 offset_ns)
{
	return front_ns + ahead_ns - offset_ns;
}

/* The latest vtime in the shared queue; front_ns, ahead_ns: of a CPU that serves it. */
UNSPIN_PURE unspin_u64 unspin_latest_shared(unspin_u64 front_ns, unspin_u64 ahead_ns, unspin_u64 shared_clock_ns,
					    unspin_u64 shared_in_time_ns)
{
	if (unspin_before(front_ns, shared_clock_ns))
		front_ns = shared_clock_ns;
	return front_ns + (shared_in_time_ns > ahead_ns ? shared_in_time_ns : ahead_ns);
}

#endif
