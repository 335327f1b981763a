/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * crowd.h - a task with short runs that waits in a crowd gets its share in parts.
 *
 * A queue is ordered by virtual time, and its clock stands while tasks that were woken together run one after another from one
 * virtual time. A task that has come a little further waited for all of them: 631 ms behind 1,024 (docs/decisions/scheduler.md#crowds).
 * Where so many wait that it matters, a domain keeps a fair clock: it goes on by the time that its CPUs have run tasks, over their part of
 * the weight of all that are runnable, as virtual time in generalized processor sharing (Parekh and Gallager 1993) and as the average
 * by which the fair class decides who is eligible (entity_eligible(), kernel/sched/fair.c, Linux 7.2). A task with short runs goes first
 * when that clock has come to where it stands, and one that wakes up or is new is placed by it, not by the queue's: a thousand threads
 * that wake up one after another, each a little behind a clock that stands, would keep those that wait there from running at all.
 *
 * Nobody gets more than the share by this. Tasks leave before or after they have had theirs, and no one recounts what others had then:
 * the clock is drawn to its queue's, the more slowly it goes the further it is ahead, and stands where it is a reach ahead.
 *
 * Positions and times are weighted ns (virtual_time.h). Callable from anywhere. Ours.
 */
#ifndef UNSPIN_POLICY_MECHANICS_CROWD_H
#define UNSPIN_POLICY_MECHANICS_CROWD_H

#include "virtual_time.h"

/* Tasks that wait for each CPU where that is a crowd: below it waits are 50 ms, by slices of 3 ms. Ours. */
#define UNSPIN_CROWD 16u
/* Short runs are such a part of a slice at most in the mean: a task with longer ones gains little by its turn. Ours. */
#define UNSPIN_SHORT_PARTS 4u
/*
 * How often the tasks that wait are counted, ns of time: at each wake-up it took 3 % of the round trips of threads that wake each
 * other. Ours.
 */
#define UNSPIN_CROWD_PERIOD_NS 1000000u
/* Tasks with short runs that a CPU keeps in mind; others wait as all do. A power of two. Ours. */
#define UNSPIN_CROWD_NOTES 32u

/* Whether a task whose runs are that long in the mean (unspin_mean_burst()) may have its share in parts. */
UNSPIN_PURE _Bool unspin_is_short(unspin_u64 mean_ns, unspin_u64 slice_ns)
{
	return mean_ns <= slice_ns / UNSPIN_SHORT_PARTS;
}

/* Whether those who wait for a CPU are a crowd, in its own queue and its part of the one that so many CPUs (1 or more, online) share. */
UNSPIN_PURE _Bool unspin_is_crowd(unspin_u64 own, unspin_u64 shared, unspin_u64 cpus)
{
	return own + shared / cpus >= UNSPIN_CROWD;
}

/* Whether they are counted again; counted_ns: when they were last, as now_ns of a clock that never goes back. */
UNSPIN_PURE _Bool unspin_crowd_is_due(unspin_u64 counted_ns, unspin_u64 now_ns)
{
	return !unspin_before(now_ns, counted_ns + UNSPIN_CROWD_PERIOD_NS);
}

/* Whether a domain has no crowd any more in which a CPU counted one at crowd_ns last: each counts at its own time. Ours. */
UNSPIN_PURE _Bool unspin_crowd_is_over(unspin_u64 crowd_ns, unspin_u64 now_ns)
{
	return unspin_before(crowd_ns + 2 * UNSPIN_CROWD_PERIOD_NS, now_ns);
}

/*
 * Where a CPU that keeps so many notes, and has written so many, writes the next one: below UNSPIN_CROWD_NOTES. Notes are kept also
 * while there is no crowd, as one may just be waking up; so most are of tasks that have run since, and where all places are taken
 * one after another is written anew.
 */
UNSPIN_PURE unspin_u32 unspin_note_slot(unspin_u32 notes, unspin_u32 written)
{
	return notes < UNSPIN_CROWD_NOTES ? notes : written % UNSPIN_CROWD_NOTES;
}

/*
 * What one of so many CPUs, of_domain of them in its domain (both 1 or more), adds to a fair share by running tasks for ran_ns, of
 * which no more than UNSPIN_LONGEST_RUN_NS counts: all that are runnable weigh so much together, as the root's sum in weights.h.
 * A sum of 0 or less is just changing: 0.
 */
UNSPIN_PURE unspin_u64 unspin_fair_share(unspin_u64 ran_ns, unspin_s64 weight, unspin_u32 cpus, unspin_u32 of_domain)
{
	if (ran_ns > UNSPIN_LONGEST_RUN_NS)
		ran_ns = UNSPIN_LONGEST_RUN_NS;
	/* 10^10 * 1024 * 2^16 CPUs: below 2^60. */
	return weight > 0 ? ran_ns * UNSPIN_NICE_0_WEIGHT * (cpus & 0xffff) / (unspin_u64)weight / of_domain : 0;
}

/*
 * By how much the fair clock at fair_ns goes on when one CPU's part of a share has come so much further, and its queue's clock is at
 * queue_ns; 0 where that is ahead by now: unspin_fair_bounded() follows. How many waited meanwhile is not known: no more than a reach
 * counts.
 */
UNSPIN_PURE unspin_u64 unspin_fair_advance(unspin_u64 fair_ns, unspin_u64 share_ns, unspin_u64 queue_ns,
					   unspin_u64 slice_ns)
{
	unspin_u64 reach_ns = unspin_plain_reach(slice_ns), ahead_ns = fair_ns - queue_ns;

	if (share_ns > reach_ns)
		share_ns = reach_ns;
	return ahead_ns < reach_ns ? share_ns * (reach_ns - ahead_ns) / reach_ns : 0;
}

/* Where the fair clock is that has gone on to fair_ns: not behind its queue's, and a reach ahead of that at most. */
UNSPIN_PURE unspin_u64 unspin_fair_bounded(unspin_u64 fair_ns, unspin_u64 queue_ns, unspin_u64 slice_ns)
{
	unspin_u64 latest_ns = queue_ns + unspin_plain_reach(slice_ns);

	if (unspin_before(fair_ns, queue_ns))
		return queue_ns;
	return unspin_before(latest_ns, fair_ns) ? latest_ns : fair_ns;
}

/*
 * The clock by which a task is placed that wakes up or is new: its queue's, or the fair one, by that queue's time, if that is ahead. One
 * that is more than a reach ahead is an old one.
 */
UNSPIN_PURE unspin_u64 unspin_crowd_clock(unspin_u64 clock_ns, unspin_u64 fair_ns, unspin_u64 slice_ns)
{
	return fair_ns - clock_ns <= unspin_plain_reach(slice_ns) ? fair_ns : clock_ns;
}

/* Whether the share of a task at that position, its present one, has come so far: it goes first. */
UNSPIN_PURE _Bool unspin_share_is_due(unspin_u64 fair_ns, unspin_u64 position_ns)
{
	return !unspin_before(fair_ns, position_ns);
}

#endif
