/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * useful_time.h - how much of a VM's time in its guest was useful, from host events alone: without what its vCPUs spun.
 *
 * A pause-loop exit says that so many PAUSEs (AMD) or cycles (Intel) of spinning ended with it (KVM's window, in force at that exit);
 * how long one of them takes is learned from the quickest window that the vCPU spun through (model/inefficiency.h). An interrupt of
 * the host stops a vCPU anywhere, and so is a sample: where it finds the vCPU waiting (classify/spin_places.h), the time since the vCPU
 * entered its guest counts as spun, a window at most, and otherwise none of it does. On Intel, where nobody sees the guest's place, a
 * vCPU is taken to wait on for so long as its last exit was a pause-loop exit. Time in the host (exits handled, CPU lost) is not time
 * in the guest.
 *
 * A guest may spin on purpose, or wait without PAUSE: then the figure of that VM is wrong, and no other's.
 */
#ifndef UNSPIN_POLICY_AUTO_USEFUL_TIME_H
#define UNSPIN_POLICY_AUTO_USEFUL_TIME_H

#include "../model/inefficiency.h"

/* Why a vCPU left its guest. */
enum unspin_stretch_end {
	UNSPIN_STRETCH_PAUSE_LOOP = 0,
	UNSPIN_STRETCH_INTERRUPTED = 1, /* by an interrupt of the host; where the vCPU was is not known */
	UNSPIN_STRETCH_OTHER = 2,	/* it was doing something else */
	UNSPIN_STRETCH_WAITING = 3,	/* by an interrupt of the host, at a place where the guest waits */
};

/* One vCPU. Zeroes to begin with. */
struct unspin_spin_meter {
	unspin_u64 entered_ns; /* when it entered its guest; 0: it is not in there */
	/* The quickest window: its time, and its units. 0 units: none so far. */
	unspin_u64 quickest_ns, quickest_units;
	unspin_u32 spinning; /* 1: it was spinning at its last exit */
	unspin_u32 unused;
};
UNSPIN_ASSERT_SIZE(struct unspin_spin_meter, 32);

/* Sums of one VM since the meter was attached. */
struct unspin_useful_time {
	unspin_u64 guest_ns; /* in its guest, all vCPUs */
	unspin_u64 spin_ns;  /* of it spinning */
	unspin_u64 spin_exits;
	unspin_u64 user_spin_exits; /* of them in user mode; 0 on Intel */
};
UNSPIN_ASSERT_SIZE(struct unspin_useful_time, 32);

/* The vCPU enters its guest; now_ns above 0. */
static inline void unspin_meter_enter(struct unspin_spin_meter *meter, unspin_u64 now_ns)
{
	meter->entered_ns = now_ns;
}

/* How long a window of so many units takes, ns; UNSPIN_UNKNOWN: not known. */
static inline unspin_u64 unspin_meter_window_ns(const struct unspin_spin_meter *meter, unspin_u64 units)
{
	if (meter->quickest_units == 0)
		return UNSPIN_UNKNOWN;
	return unspin_scale(units, meter->quickest_ns, meter->quickest_units);
}

/*
 * The vCPU has left its guest: adds what it did in there. `window`: in force, in the hardware's unit; UNSPIN_UNKNOWN_HALF or 0: not
 * known; `end`: enum unspin_stretch_end.
 */
static inline void unspin_meter_exit(struct unspin_spin_meter *meter, struct unspin_useful_time *sums, unspin_u32 end,
				     unspin_u32 window, unspin_u64 now_ns)
{
	unspin_u64 stretch_ns, window_ns, spin_ns = 0;

	if (meter->entered_ns == 0 || now_ns < meter->entered_ns)
		return;
	stretch_ns = now_ns - meter->entered_ns;
	meter->entered_ns = 0;
	if (end == UNSPIN_STRETCH_PAUSE_LOOP &&
	    unspin_window_is_quicker(stretch_ns, window, meter->quickest_ns, meter->quickest_units)) {
		meter->quickest_ns = stretch_ns;
		meter->quickest_units = window;
	}
	window_ns = unspin_meter_window_ns(meter, window);
	if (end == UNSPIN_STRETCH_PAUSE_LOOP)
		spin_ns = stretch_ns < window_ns ? stretch_ns : window_ns;
	else if (end == UNSPIN_STRETCH_WAITING)
		spin_ns = stretch_ns < window_ns ? stretch_ns : window_ns;
	else if (end == UNSPIN_STRETCH_INTERRUPTED && meter->spinning && stretch_ns < window_ns)
		spin_ns = stretch_ns;
	meter->spinning = end == UNSPIN_STRETCH_PAUSE_LOOP || spin_ns != 0;
	sums->guest_ns += stretch_ns;
	sums->spin_ns += spin_ns;
	sums->spin_exits += end == UNSPIN_STRETCH_PAUSE_LOOP;
}

/* Parts of time spun in a thousand parts of time in the guest; 0 where there was none. */
static inline unspin_u32 unspin_spin_permille(unspin_u64 guest_ns, unspin_u64 spin_ns)
{
	unspin_u64 permille = guest_ns != 0 ? unspin_scale(spin_ns, 1000, guest_ns) : 0;

	return permille < 1000 ? (unspin_u32)permille : 1000;
}

#endif
