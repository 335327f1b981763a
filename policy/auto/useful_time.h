/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * useful_time.h - how much of a VM's time in its guest was useful, from host events alone: without what its vCPUs spun.
 *
 * A pause-loop exit says that so many PAUSEs (AMD) or cycles (Intel) of spinning ended with it (KVM's window, in force at that exit);
 * how long one of them takes is learned place by place (classify/spin_places.h). An interrupt of the host stops a vCPU anywhere, and
 * so is a sample: where it finds the vCPU waiting, at such a place, the time since the vCPU entered its guest counts as spun, a
 * window at most, and otherwise none of it does. On Intel, where nobody sees the guest's place, a vCPU that was spinning at its last
 * exit is taken to spin on, until it is in its guest for as long as a window. Time in the host (exits handled, CPU lost) is not time
 * in the guest.
 *
 * That is wrong where slices are shorter than a window and locks are handed on as soon as their next waiter gets a CPU: each stretch begins
 * with work and ends at a place, and all of it counts as spun. So it compares policies under slices of one length; where slices are what
 * is compared, samples at times of their own say which part of the time in the guest was spun (unspin_by_samples()).
 *
 * A guest may spin on purpose, or wait without PAUSE: then the figure of that VM is wrong, and no other's.
 */
#ifndef UNSPIN_POLICY_AUTO_USEFUL_TIME_H
#define UNSPIN_POLICY_AUTO_USEFUL_TIME_H

#include "../classify/spin_places.h"

/* Why a vCPU left its guest. */
enum unspin_stretch_end {
	UNSPIN_STRETCH_PAUSE_LOOP = 0,
	UNSPIN_STRETCH_INTERRUPTED = 1, /* by an interrupt of the host */
	UNSPIN_STRETCH_OTHER = 2,
};

/* A stretch of time in the guest has ended. */
struct unspin_stretch {
	unspin_u64 now_ns;		/* above 0 */
	struct unspin_code_place where; /* the guest was; zeroes: nobody sees it (Intel) */
	unspin_u32 end;			/* enum unspin_stretch_end */
	unspin_u32 window;		/* in force, in the hardware's unit; 0: not known */
	unspin_u32 user;		/* 1: in user mode */
	unspin_u32 renews;		/* 1: a place where an interrupt finds the vCPU waiting is known for longer */
};
UNSPIN_ASSERT_SIZE(struct unspin_stretch, 40);

/* One vCPU. Zeroes to begin with. */
struct unspin_spin_meter {
	unspin_u64 entered_ns;	/* when it entered its guest; 0: it is not in there */
	unspin_u32 spinning;	/* 1: it was spinning at its last exit */
	unspin_u32 interrupted; /* 1: that was by an interrupt, and it has not entered since */
};
UNSPIN_ASSERT_SIZE(struct unspin_spin_meter, 16);

/* Sums of one VM since the meter was attached. */
struct unspin_useful_time {
	unspin_u64 guest_ns; /* in its guest, all vCPUs */
	unspin_u64 spin_ns;  /* of it spinning */
	unspin_u64 spin_exits;
	unspin_u64 user_spin_exits; /* of them in user mode; 0 on Intel */
	unspin_u64 samples;	    /* of vCPUs in their guest, at times of their own; 0: none are taken */
	unspin_u64 waiting;	    /* of them at a place where the guest waits */
};
UNSPIN_ASSERT_SIZE(struct unspin_useful_time, 48);

/* The vCPU enters its guest; now_ns above 0. */
static inline void unspin_meter_enter(struct unspin_spin_meter *meter, unspin_u64 now_ns)
{
	meter->entered_ns = now_ns;
	meter->interrupted = 0;
}

/* What of a stretch so long was spun, ns. */
static inline unspin_u64 unspin_spun_ns(const struct unspin_spin_meter *meter, struct unspin_spin_places *places,
					const struct unspin_stretch *stretch, unspin_u64 stretch_ns)
{
	_Bool pause_loop = stretch->end == UNSPIN_STRETCH_PAUSE_LOOP, blind = stretch->where.pointer == 0;
	unspin_u64 window_ns;
	unspin_u32 at;

	if (stretch->end == UNSPIN_STRETCH_OTHER)
		return 0;
	at = pause_loop ? unspin_learn_spin_place(places, &stretch->where, stretch_ns, stretch->window, stretch->now_ns)
			: unspin_spin_place_of(places, &stretch->where, stretch->now_ns);
	if (at >= UNSPIN_SPIN_PLACES)
		return 0;
	if (stretch->renews)
		places->seen_ns[at % UNSPIN_SPIN_PLACES] = stretch->now_ns;
	window_ns = unspin_spin_window_ns(places, at, stretch->window);
	if (!pause_loop && blind && (!meter->spinning || stretch_ns >= window_ns))
		return 0;
	return stretch_ns < window_ns ? stretch_ns : window_ns;
}

/* The vCPU has left its guest: adds what it did in there to the sums of its VM. */
static inline void unspin_meter_exit(struct unspin_spin_meter *meter, struct unspin_spin_places *places,
				     struct unspin_useful_time *sums, const struct unspin_stretch *stretch)
{
	_Bool pause_loop = stretch->end == UNSPIN_STRETCH_PAUSE_LOOP;
	unspin_u64 stretch_ns, spin_ns;

	if (meter->entered_ns == 0 || stretch->now_ns < meter->entered_ns)
		return;
	stretch_ns = stretch->now_ns - meter->entered_ns;
	meter->entered_ns = 0;
	spin_ns = unspin_spun_ns(meter, places, stretch, stretch_ns);
	meter->spinning = pause_loop || spin_ns != 0;
	meter->interrupted = stretch->end == UNSPIN_STRETCH_INTERRUPTED;
	sums->guest_ns += stretch_ns;
	sums->spin_ns += spin_ns;
	sums->spin_exits += pause_loop;
	sums->user_spin_exits += pause_loop && stretch->user;
}

/* A timer that runs at times of its own has fired while the vCPU's thread runs, and the vCPU was last seen as its meter says. */
static inline void unspin_meter_sample(const struct unspin_spin_meter *meter, struct unspin_useful_time *sums)
{
	if (!meter->interrupted)
		return;
	sums->samples++;
	sums->waiting += meter->spinning;
}

/* Fewer samples say nothing: then the VM counts as one that was not in its guest, and is not judged. Ours. */
#define UNSPIN_USEFUL_SAMPLES 50u

/* What was spun by samples alone, in place of what exits say. */
static inline void unspin_by_samples(struct unspin_useful_time *grown)
{
	if (grown->samples < UNSPIN_USEFUL_SAMPLES)
		grown->guest_ns = 0;
	grown->spin_ns = grown->guest_ns != 0 ? unspin_scale(grown->guest_ns, grown->waiting, grown->samples) : 0;
}

/* Parts of time spun in a thousand parts of time in the guest; 0 where there was none. */
static inline unspin_u32 unspin_spin_permille(unspin_u64 guest_ns, unspin_u64 spin_ns)
{
	unspin_u64 permille = guest_ns != 0 ? unspin_scale(spin_ns, 1000, guest_ns) : 0;

	return permille < 1000 ? (unspin_u32)permille : 1000;
}

#endif
