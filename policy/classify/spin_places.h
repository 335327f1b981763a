/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * spin_places.h - where in its code a guest waits, learned from its pause-loop exits: so that a vCPU that is stopped in the middle of a
 * wait, by an interrupt or at the end of its slice, is known to spin although its window is not over.
 *
 * A place is the guest's instruction pointer at such an exit, with 32 bytes on either side, which is a loop's length; in the guest's
 * user mode in one address space (CR3) only. Of a VM as many are kept as there is room for, each for 10 s since the last exit there.
 * A guest may put its PAUSEs wherever it likes: what follows from a place concerns that VM alone.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_SPIN_PLACES_H
#define UNSPIN_POLICY_CLASSIFY_SPIN_PLACES_H

#include "../../abi/types.h"

/* All ours: Linux waits for spinlocks, calls and RCU in fewer places than that. */
#define UNSPIN_SPIN_PLACES 8u
#define UNSPIN_SPIN_PLACE_BYTES 32u
#define UNSPIN_SPIN_PLACE_NS 10000000000ull

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
	unspin_u64 next;			/* that is replaced when another is learned */
};
UNSPIN_ASSERT_SIZE(struct unspin_spin_places, 200);

/* Which of them that is; UNSPIN_SPIN_PLACES: none. */
static inline unspin_u32 unspin_spin_place_of(const struct unspin_spin_places *places,
					      const struct unspin_code_place *where, unspin_u64 now_ns)
{
	unspin_u32 at;

	for (at = 0; at < UNSPIN_SPIN_PLACES; at++) {
		unspin_u64 off = where->pointer - places->of[at].pointer + UNSPIN_SPIN_PLACE_BYTES;

		if (places->seen_ns[at] != 0 && off <= 2 * UNSPIN_SPIN_PLACE_BYTES &&
		    places->of[at].space == where->space && now_ns - places->seen_ns[at] < UNSPIN_SPIN_PLACE_NS)
			return at;
	}
	return UNSPIN_SPIN_PLACES;
}

/* A pause-loop exit was there, at a time above 0. */
static inline void unspin_learn_spin_place(struct unspin_spin_places *places, const struct unspin_code_place *where,
					   unspin_u64 now_ns)
{
	unspin_u32 at = unspin_spin_place_of(places, where, now_ns);

	if (at >= UNSPIN_SPIN_PLACES) {
		at = places->next % UNSPIN_SPIN_PLACES;
		places->next = at + 1;
		places->of[at] = *where;
	}
	places->seen_ns[at] = now_ns;
}

#endif
