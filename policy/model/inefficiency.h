/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * inefficiency.h - the share of a VM's CPU time that went into spinning up to pause-loop exits and into handling them:
 * APPLE, sections III.C and III.D, as ruling 17 defines it, over epochs of 1,000 exits (rulings 18 and 19).
 *
 * It is not the share of time spent spinning: waits that end before the window is over are not in it, and time off the
 * CPU is not either. Integers only: times in nanoseconds, a window's unit in picoseconds.
 */
#ifndef UNSPIN_POLICY_MODEL_INEFFICIENCY_H
#define UNSPIN_POLICY_MODEL_INEFFICIENCY_H

#include "../../abi/bpf/events.h"

#define UNSPIN_EPOCH_EXITS 1000u

/* One VM's epoch. Zeroes to begin with. */
struct unspin_epoch {
	unspin_u64 exits;
	/* Sum of the windows in force at the exits, in their unit: PAUSEs (AMD) or TSC cycles (Intel). */
	unspin_u64 window_units;
	unspin_u64 windows_unknown; /* exits whose window is not known */
	unspin_u64 handling_ns;	    /* from each exit until the vCPU left its pCPU or entered the guest again */
	unspin_u64 cpu_ns;	    /* of all the VM's vCPU threads */
};

/* Adds one exit; `window` is UNSPIN_UNKNOWN_HALF where it is not known. Returns whether the epoch is complete. */
static inline _Bool unspin_epoch_add_exit(struct unspin_epoch *epoch, unspin_u32 window)
{
	if (window == UNSPIN_UNKNOWN_HALF)
		epoch->windows_unknown++;
	else
		epoch->window_units += window;
	epoch->exits++;
	return epoch->exits >= UNSPIN_EPOCH_EXITS;
}

/* a * b / c with c above 0, or UNSPIN_UNKNOWN where a * b does not fit. */
static inline unspin_u64 unspin_scale(unspin_u64 a, unspin_u64 b, unspin_u64 c)
{
	unspin_u64 most = b != 0 ? UNSPIN_UNKNOWN / b : UNSPIN_UNKNOWN;

	/* Nothing happens here: else clang makes the next lines one multiplication of 128 bits, which BPF does not have. */
	__asm__("" : "+r"(most));
	if (a > most)
		return UNSPIN_UNKNOWN;
	return a * b / c;
}

/*
 * Inefficiency in parts per million, or UNSPIN_UNKNOWN. `unit_ps`: how long one unit of the window takes, in picoseconds;
 * UNSPIN_UNKNOWN or 0: not known. More than 1,000,000 is possible: the epoch's last exits may be handled after its end.
 */
static inline unspin_u64 unspin_inefficiency_ppm(const struct unspin_epoch *epoch, unspin_u64 unit_ps)
{
	unspin_u64 spinning_ns;

	if (epoch->windows_unknown != 0 || epoch->cpu_ns == 0 || unit_ps == 0 || unit_ps == UNSPIN_UNKNOWN)
		return UNSPIN_UNKNOWN;
	spinning_ns = unspin_scale(epoch->window_units, unit_ps, 1000);
	if (spinning_ns == UNSPIN_UNKNOWN || spinning_ns > UNSPIN_UNKNOWN - epoch->handling_ns)
		return UNSPIN_UNKNOWN;
	return unspin_scale(spinning_ns + epoch->handling_ns, 1000000, epoch->cpu_ns);
}

/*
 * Whether windows of so many units can have taken so long, on average: enough time passed for each unit. A PAUSE in a loop
 * takes a nanosecond at least (4 cycles at 4 GHz; 10 to 140 is usual); a TSC cycle takes as long as its rate gives, of which a
 * tenth is left for the clock's error. Below that, exits come more often than the window allows: it is ignored.
 * All sums are of the same exits; 0 units: nothing is known, so not shown to be ignored.
 */
static inline _Bool unspin_window_is_honoured(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 least_unit_ps)
{
	unspin_u64 least_ns = unspin_scale(units, least_unit_ps, 1000);

	return least_ns != UNSPIN_UNKNOWN && inside_ns >= least_ns;
}

/* The least time of one PAUSE in a waiting loop, picoseconds: see unspin_window_is_honoured(). */
#define UNSPIN_PAUSE_LEAST_PS 1000u

/*
 * Whether a window of so many units, after so long in the guest, was spun through quicker by the unit than the quickest so far
 * (of 0 units: there is none yet). Every exit means that so many units passed since the entry, and often the guest did other
 * work between waits; the quickest did the least of it. Neither product leaves 64 bits: what took 4 s or longer, or is
 * unknown, is left out.
 */
static inline _Bool unspin_window_is_quicker(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 quickest_ns,
					     unspin_u64 quickest_units)
{
	if (inside_ns == 0 || inside_ns >= UNSPIN_UNKNOWN_HALF || units == 0 || units >= UNSPIN_UNKNOWN_HALF)
		return 0;
	return quickest_units == 0 || inside_ns * quickest_units < quickest_ns * units;
}

/*
 * The time of one unit, picoseconds, by a window that was spun through: its time in the guest, and its units.
 * UNSPIN_UNKNOWN: there was none, or windows are ignored.
 */
static inline unspin_u64 unspin_window_unit_ps(unspin_u64 inside_ns, unspin_u64 units, unspin_u64 least_unit_ps)
{
	if (units == 0 || !unspin_window_is_honoured(inside_ns, units, least_unit_ps))
		return UNSPIN_UNKNOWN;
	return unspin_scale(inside_ns, 1000, units);
}

#endif
