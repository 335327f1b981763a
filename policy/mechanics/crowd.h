/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * crowd.h - a task with short runs that waits in a crowd gets its share in parts.
 *
 * A queue is ordered by virtual time, and its clock stands while tasks that were woken together run one after another from one
 * virtual time. A task that has come a little further waited for all of them: 631 ms behind 1,024 (docs/decisions/scheduler.md#crowds).
 * Where so many wait that it matters, a CPU keeps a fair clock: it goes on by the virtual time that the CPU has served over the number
 * of tasks that wait for it, as virtual time in generalized processor sharing (Parekh and Gallager 1993) and as the average by
 * which the fair class decides who is eligible (entity_eligible(), kernel/sched/fair.c, Linux 7.2). A task with short runs goes first
 * when that clock has come to where it stands.
 *
 * Beside a crowd of one weight nobody gets more than the share by this. Beside one of mixed weights it is three times as much at most,
 * in the first round: light tasks have a slice then, too, and bring the clock on faster.
 *
 * Positions and times are weighted ns (virtual_time.h). Used by the CPU whose clock it is. Callable from anywhere. Ours.
 */
#ifndef UNSPIN_POLICY_MECHANICS_CROWD_H
#define UNSPIN_POLICY_MECHANICS_CROWD_H

#include "virtual_time.h"

/* Tasks that wait for each CPU where that is a crowd: below it waits are 50 ms, by slices of 3 ms. Ours. */
#define UNSPIN_CROWD 16u
/* A short run is such a part of a slice at most: a task with longer ones gains little by its turn. Ours. */
#define UNSPIN_SHORT_PARTS 4u
/*
 * How often the tasks that wait are counted, ns of time: at each wake-up it took 3 % of the round trips of threads that wake each
 * other. Ours.
 */
#define UNSPIN_CROWD_PERIOD_NS 1000000u
/* Tasks with short runs that a CPU keeps in mind; others wait as all do. A power of two. Ours. */
#define UNSPIN_CROWD_NOTES 32u

/* A CPU's; zero at first. */
struct unspin_fair_clock {
	unspin_u64 at_ns;     /* the position to which a fair share has come */
	unspin_u64 served_ns; /* virtual time that the CPU had served by then */
};
UNSPIN_ASSERT_SIZE(struct unspin_fair_clock, 16);

/* Whether a task whose runs are expected to be that long may have its share in parts. */
UNSPIN_PURE _Bool unspin_is_short(unspin_u64 burst_ns, unspin_u64 slice_ns)
{
	return burst_ns <= slice_ns / UNSPIN_SHORT_PARTS;
}

/* How many wait for a CPU, in its own queue and its part of the one that so many CPUs (1 or more) share; 0: they are no crowd. */
UNSPIN_PURE unspin_u64 unspin_crowd(unspin_u64 own, unspin_u64 shared, unspin_u64 cpus)
{
	unspin_u64 waiting = own + shared / cpus;

	return waiting < UNSPIN_CROWD ? 0 : waiting;
}

/* Whether they are counted again; counted_ns: when they were last, as now_ns of a clock that never goes back. */
UNSPIN_PURE _Bool unspin_crowd_is_due(unspin_u64 counted_ns, unspin_u64 now_ns)
{
	return !unspin_before(now_ns, counted_ns + UNSPIN_CROWD_PERIOD_NS);
}

/*
 * Where a CPU that keeps so many notes, and has replaced so many, writes the next one: below UNSPIN_CROWD_NOTES. Notes are kept also
 * while there is no crowd, as one may just be waking up; so most are of tasks that have run since, and where all places are taken
 * one after another is written anew.
 */
UNSPIN_PURE unspin_u32 unspin_note_slot(unspin_u32 notes, unspin_u32 replaced)
{
	return notes < UNSPIN_CROWD_NOTES ? notes : replaced % UNSPIN_CROWD_NOTES;
}

/*
 * The clock now: the CPU has served so much, a crowd of `waiting` tasks waits for it, and the clock of their queue is at queue_ns,
 * behind which it never is. How many waited since it was asked last is not known: it goes on by no more than a reach. Where no crowd
 * waits (0) it is that clock. All CPUs ask, whether they have notes or not: a task may be noted by another one each time.
 */
UNSPIN_PURE struct unspin_fair_clock unspin_fair_clock_now(struct unspin_fair_clock clock, unspin_u64 served_ns,
							   unspin_u64 waiting, unspin_u64 queue_ns, unspin_u64 slice_ns)
{
	unspin_u64 come_ns = waiting ? (served_ns - clock.served_ns) / waiting : 0;

	if (come_ns > unspin_plain_reach(slice_ns))
		come_ns = unspin_plain_reach(slice_ns);
	clock.at_ns += come_ns;
	clock.served_ns = served_ns;
	if (!waiting || unspin_before(clock.at_ns, queue_ns))
		clock.at_ns = queue_ns;
	return clock;
}

/* Whether the share of a task at that position, its present one, has come so far: it goes first. */
UNSPIN_PURE _Bool unspin_share_is_due(struct unspin_fair_clock clock, unspin_u64 position_ns)
{
	return !unspin_before(clock.at_ns, position_ns);
}

#endif
