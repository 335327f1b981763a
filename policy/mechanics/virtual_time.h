/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * virtual_time.h - virtual time: how far the tasks of a queue have come, and where a task is placed among them.
 *
 * A queue's clock shows the vtime of the last task of it that began a slice while none that waited had less. A task that comes to it, or
 * continues, is only so far behind: credit is not saved. A light task that runs while no other waits advances the clock at the
 * rate of its weight. In its own queue that delays none, for all tasks there are placed by that clock. In another one it would:
 * with a single clock for all queues a task that was pinned to a CPU ran far ahead, and a sleeper that was placed beside it
 * waited until all others had come that far (under stress-ng a sleeper was 677 ms late, 20 ms with the kernel's scheduler). A single average over all tasks (as avg_vruntime() of kernel/sched/fair.c, Linux 7.2) does not tell where
 * tasks can be: one that never leaves its CPU held it back, and two others then shared one CPU as 3 to 1.
 *
 * So each queue has its own clock, and where a CPU chooses between its own queue and the shared one, they are set side by
 * side by an offset. It is made anew when a task of the CPU's queue begins a slice and no task waits in either, for then neither
 * has a claim on the other. While tasks wait in both, the least vtime is served, by weight, and only what no slice can have
 * earned is taken off: a task that ran alone somewhere else for long took its queue's clock along. (Where only the shared
 * queue was compared, and the weight of its first task alone bounded how far it can be, a task that waited for its CPU was set
 * back at each slice of a heavy one there, and had 6 % more than its share.)
 *
 * Times are weighted ns and wrap around: two are compared by unspin_before(), and are never 2^63 or more apart. A position is
 * a vtime with its queue's offset added; the shared queue's offset is 0. `slice_ns`: the kernel's base_slice_ns. `weight`: an
 * effective one (weights.h). Callable from anywhere; the caller holds the task, and other CPUs may advance clocks meanwhile.
 */
#ifndef UNSPIN_POLICY_MECHANICS_VIRTUAL_TIME_H
#define UNSPIN_POLICY_MECHANICS_VIRTUAL_TIME_H

#include "weights.h"

/*
 * A slice ends at the first tick after its slice: at CONFIG_HZ=250, as Debian's kernels have it. Slices and a tick bound the
 * lag on the fair class, too (update_entity_lag(), kernel/sched/fair.c); how many is ours.
 */
#define UNSPIN_TICK_NS 4000000ull

UNSPIN_PURE _Bool unspin_before(unspin_u64 one, unspin_u64 other)
{
	return (one - other) >> 63;
}

/* How far a task may be from others for what it has run, or not run: one of nice 0 that is alone, */
UNSPIN_PURE unspin_u64 unspin_plain_reach(unspin_u64 slice_ns)
{
	return 2 * slice_ns + UNSPIN_TICK_NS;
}

/* and one of that weight. */
UNSPIN_PURE unspin_u64 unspin_reach(unspin_u64 weight, unspin_u64 slice_ns)
{
	return unspin_weighted(weight, unspin_plain_reach(slice_ns));
}

/* That virtual time, no further behind the clock than the task's reach. */
UNSPIN_PURE unspin_u64 unspin_clamp_vtime(unspin_u64 vtime_ns, unspin_u64 weight, unspin_u64 clock_ns,
					  unspin_u64 slice_ns)
{
	unspin_u64 floor_ns = clock_ns - unspin_reach(weight, slice_ns);

	return unspin_before(vtime_ns, floor_ns) ? floor_ns : vtime_ns;
}

/* Its virtual time when it has run so much more, what others ran at its charge included; `clock_ns`: of its queue. */
UNSPIN_PURE unspin_u64 unspin_charge_vtime(unspin_u64 vtime_ns, unspin_u64 weight, unspin_u64 ran_ns,
					   unspin_u64 clock_ns, unspin_u64 slice_ns)
{
	return unspin_clamp_vtime(vtime_ns + unspin_weighted(weight, ran_ns), weight, clock_ns, slice_ns);
}

/* Its virtual time by another queue's clock: its position stays. */
UNSPIN_PURE unspin_u64 unspin_moved_vtime(unspin_u64 vtime_ns, unspin_u64 from_offset_ns, unspin_u64 to_offset_ns)
{
	return vtime_ns + from_offset_ns - to_offset_ns;
}

/* How far a queue with that offset is where it stands abreast of the shared one. */
UNSPIN_PURE unspin_u64 unspin_abreast(unspin_u64 shared_clock_ns, unspin_u64 offset_ns)
{
	return shared_clock_ns - offset_ns;
}

/* The clock by which a task that comes to a queue is placed. A queue of a CPU in which none waits is as far as the shared one. */
UNSPIN_PURE unspin_u64 unspin_placing_clock(unspin_u64 clock_ns, unspin_u64 abreast_ns, _Bool nobody_waits)
{
	return nobody_waits && unspin_before(clock_ns, abreast_ns) ? abreast_ns : clock_ns;
}

/*
 * The virtual time of a task that comes to a queue, or to it again, by that queue's clock; `debt_ns`: run by others at its
 * charge, not in its virtual time yet; `clock_ns`: unspin_placing_clock().
 */
UNSPIN_PURE unspin_u64 unspin_place_vtime(unspin_u64 vtime_ns, unspin_u64 weight, unspin_u64 debt_ns,
					  unspin_u64 clock_ns, unspin_u64 slice_ns)
{
	return unspin_charge_vtime(vtime_ns, weight, debt_ns, clock_ns, slice_ns);
}

/*
 * A new task has to wait a slice, as with START_DEBIT of the fair class up to Linux 6.5 (place_entity()): tasks that are made
 * one after another would otherwise always be first.
 */
UNSPIN_PURE unspin_u64 unspin_start_vtime(unspin_u64 clock_ns, unspin_u64 weight, unspin_u64 slice_ns)
{
	return clock_ns + unspin_weighted(weight, slice_ns);
}

/*
 * The clock of a queue when a task of it begins a slice. It need not be the least then: a task that joins the scheduler, or
 * changes its weight, while it runs continues where it is, and a slice may be passed on. Tasks that wait in its queue must not
 * fall behind the clock for that: it goes to the least of them at most, as min_vruntime of the fair class did
 * (update_min_vruntime(), Linux 6.5). `least_waiting_ns` means nothing unless a task waits.
 */
UNSPIN_PURE unspin_u64 unspin_advance_clock(unspin_u64 clock_ns, unspin_u64 vtime_ns, _Bool somebody_waits,
					    unspin_u64 least_waiting_ns)
{
	unspin_u64 least_ns = vtime_ns;

	if (somebody_waits && unspin_before(least_waiting_ns, least_ns))
		least_ns = least_waiting_ns;
	return unspin_before(clock_ns, least_ns) ? least_ns : clock_ns;
}

/* The offset that sets a queue of a CPU abreast of the shared one; no task waits in either. */
UNSPIN_PURE unspin_u64 unspin_offset_abreast(unspin_u64 shared_clock_ns, unspin_u64 clock_ns)
{
	return shared_clock_ns - clock_ns;
}

/* Of the first of a CPU's queue and the first of the shared one, by their positions: the one that is ahead may be too far. */
UNSPIN_PURE _Bool unspin_far_apart(unspin_u64 own_ns, unspin_u64 shared_ns, unspin_u64 slice_ns)
{
	unspin_u64 by_ns = unspin_before(own_ns, shared_ns) ? shared_ns - own_ns : own_ns - shared_ns;

	return by_ns > unspin_plain_reach(slice_ns);
}

/*
 * What is to be added to the offset of a CPU's queue, and so to own_ns, before the two are compared: by so much the one that is
 * ahead is beyond its reach; one of more weight may be where another took its queue's clock. 0 unless unspin_far_apart().
 * `weight_ahead`: of the one that is ahead.
 */
UNSPIN_PURE unspin_u64 unspin_align(unspin_u64 own_ns, unspin_u64 shared_ns, unspin_u64 weight_ahead,
				    unspin_u64 slice_ns)
{
	_Bool shared_ahead = unspin_before(own_ns, shared_ns);
	unspin_u64 by_ns = shared_ahead ? shared_ns - own_ns : own_ns - shared_ns;
	unspin_u64 reach_ns = unspin_reach(weight_ahead, slice_ns), beyond_ns;

	if (reach_ns < unspin_plain_reach(slice_ns))
		reach_ns = unspin_plain_reach(slice_ns);
	beyond_ns = by_ns > reach_ns ? by_ns - reach_ns : 0;
	return shared_ahead ? beyond_ns : -beyond_ns;
}

/* Whether a CPU takes the first of the shared queue, not that of its own: the least position, of equals the CPU's own. */
UNSPIN_PURE _Bool unspin_shared_is_first(_Bool own_waits, unspin_u64 own_ns, _Bool shared_waits, unspin_u64 shared_ns)
{
	return shared_waits && (!own_waits || unspin_before(shared_ns, own_ns));
}

#endif
