/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * spin_places.h - where in its code a guest waits, learned from its pause-loop exits: so that a vCPU that is stopped in the middle of a
 * wait, by an interrupt or at the end of its slice, is known to spin although its window is not over.
 *
 * A place is the guest's instruction pointer at such an exit, with 128 bytes on either side, since a waiting loop may be as long (the
 * micro guest's have 91); in the guest's user mode in one address space (CR3) only. Of a VM as many are kept as there is room for,
 * each for 10 s since the last exit there. A guest may put its PAUSEs wherever it likes: what follows from a place concerns that VM alone.
 *
 * How long one unit of the window takes (a PAUSE with the loop around it on AMD, a TSC cycle on Intel) is learned for each place, from
 * the quickest window that was spun through there lately: loops differ by ten times and more, and CPUs are slower beside a busy sibling.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_SPIN_PLACES_H
#define UNSPIN_POLICY_CLASSIFY_SPIN_PLACES_H

#include "../model/inefficiency.h"

/* All ours. */
#define UNSPIN_SPIN_PLACES 8u		    /* of a VM: a Linux guest waits for spinlocks, calls and RCU in fewer */
#define UNSPIN_SPIN_PLACE_BYTES 128u	    /* on either side */
#define UNSPIN_SPIN_PLACE_NS 10000000000ull /* since the last exit there */
#define UNSPIN_SPIN_PLACE_FORGETS 64u	    /* a unit grows by this part of itself at each exit that was slower */

/* Where a vCPU was. */
struct unspin_code_place {
	unspin_u64 pointer; /* guest-virtual */
	unspin_u64 space;   /* CR3 in user mode; 0: in the kernel, which lies at the same addresses in all of them */
};
UNSPIN_ASSERT_SIZE(struct unspin_code_place, 16);

/* Those of one VM. Zeroes to begin with. */
struct unspin_spin_places {
	struct unspin_code_place of[UNSPIN_SPIN_PLACES];
	unspin_u64 seen_ns[UNSPIN_SPIN_PLACES]; /* when an exit was there last; 0: no place */
	unspin_u64 unit_ps[UNSPIN_SPIN_PLACES]; /* of the window there; UNSPIN_UNKNOWN: not known */
	unspin_u64 next;			/* that is replaced when another is learned */
};
UNSPIN_ASSERT_SIZE(struct unspin_spin_places, 264);

/* Which of them that is; UNSPIN_SPIN_PLACES: none. */
static inline unspin_u32 unspin_spin_place_of(const struct unspin_spin_places *places,
					      const struct unspin_code_place *where, unspin_u64 now_ns)
{
	unspin_u32 at;

	for (at = 0; at < UNSPIN_SPIN_PLACES; at++) {
		unspin_u64 off = where->pointer - places->of[at].pointer + UNSPIN_SPIN_PLACE_BYTES;
		unspin_u64 seen_ns = places->seen_ns[at];

		/* Another CPU may have seen it after this one read its clock. */
		if (seen_ns != 0 && off <= 2 * UNSPIN_SPIN_PLACE_BYTES && places->of[at].space == where->space &&
		    (now_ns < seen_ns || now_ns - seen_ns < UNSPIN_SPIN_PLACE_NS))
			return at;
	}
	return UNSPIN_SPIN_PLACES;
}

/*
 * A pause-loop exit was there, at a time above 0, so long after the guest was entered, with a window of so many units (0: not known).
 * Returns which place that is.
 */
static inline unspin_u32 unspin_learn_spin_place(struct unspin_spin_places *places,
						 const struct unspin_code_place *where, unspin_u64 inside_ns,
						 unspin_u32 window, unspin_u64 now_ns)
{
	unspin_u32 at = unspin_spin_place_of(places, where, now_ns);
	unspin_u64 unit_ps = window != 0 ? unspin_scale(inside_ns, 1000, window) : UNSPIN_UNKNOWN;

	if (at >= UNSPIN_SPIN_PLACES) {
		at = places->next % UNSPIN_SPIN_PLACES;
		places->next = at + 1;
		places->of[at] = *where;
		places->unit_ps[at] = unit_ps;
	} else {
		unspin_u64 known_ps = places->unit_ps[at];

		/* The quickest is forgotten over some hundred exits. */
		if (known_ps < UNSPIN_UNKNOWN / 2)
			known_ps += known_ps / UNSPIN_SPIN_PLACE_FORGETS;
		places->unit_ps[at] = unit_ps < known_ps ? unit_ps : known_ps;
	}
	places->seen_ns[at] = now_ns;
	return at;
}

/* How long a window of so many units takes there, ns; UNSPIN_UNKNOWN: not known. `at`: below UNSPIN_SPIN_PLACES. */
static inline unspin_u64 unspin_spin_window_ns(const struct unspin_spin_places *places, unspin_u32 at,
					       unspin_u32 window)
{
	unspin_u64 unit_ps = places->unit_ps[at % UNSPIN_SPIN_PLACES];

	if (window == 0 || unit_ps == UNSPIN_UNKNOWN)
		return UNSPIN_UNKNOWN;
	return unspin_scale(window, unit_ps, 1000);
}

#endif
