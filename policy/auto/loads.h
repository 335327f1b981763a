/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * loads.h - the loads that a VM has had, and what was found out about each: the policy `auto`.
 *
 * A load is told by the part of its time in the guest that the VM spins under each set. Where that part changes by much, the load has
 * changed; if it is what another load was seen to spin under this set, it is taken for that one, with the set that was found for it
 * and the trial that was going on (docs/decisions/auto.md#loads). All numbers here are ours, and none is fitted to a figure.
 * Callable from anywhere.
 */
#ifndef UNSPIN_POLICY_AUTO_LOADS_H
#define UNSPIN_POLICY_AUTO_LOADS_H

#include "sets.h"
#include "trial.h"

/* Loads of a VM that are remembered; a further one takes the place of that which was there longest ago. */
#define UNSPIN_AUTO_LOADS 4u
/* Parts spun, in a thousand: so much more or less than it was is another load; so near is the same. */
#define UNSPIN_AUTO_CHANGE_PERMILLE 150u
#define UNSPIN_AUTO_ALIKE_PERMILLE 75u

/* One load. */
struct unspin_auto_load {
	struct unspin_trial trial; /* that is going on, or was the last one */
	unspin_u32 acting;	   /* enum unspin_auto_set: found to be the best so far */
	unspin_u32 tried_now;	   /* the set on trial; UNSPIN_AUTO_SET_COUNT: none */
	unspin_u32 tried;	   /* bits: sets that were tried */
	unspin_u32 next_retest;	   /* the set that is tried again next */
	unspin_u32 is_long;	   /* 1: epochs of trials are long */
	unspin_u32 seen;	   /* number of the visit in which it was there last; 0: none, it is free */
	unspin_u32 disturbed;	   /* bits: sets under which it was seen in trials only, disturbed by others */
	unspin_u32 rests;	   /* times that another load interrupted the trial since its last pair */
	unspin_u32 permille[UNSPIN_AUTO_SET_COUNT]; /* spun under each set; UNSPIN_UNKNOWN_HALF: not known */
};
UNSPIN_ASSERT_SIZE(struct unspin_auto_load, 80);

/* A load of which nothing is known; `acting` acts. */
static inline void unspin_auto_load_begin(struct unspin_auto_load *load, unspin_u32 acting, unspin_u32 visit)
{
	unspin_u32 set;

	*load = (struct unspin_auto_load){
		.acting = acting,
		.tried_now = UNSPIN_AUTO_SET_COUNT,
		.tried = 1u << acting,
		.seen = visit,
	};
	for (set = 0; set < UNSPIN_AUTO_SET_COUNT; set++)
		load->permille[set] = UNSPIN_UNKNOWN_HALF;
}

static inline _Bool unspin_auto_is_known(const struct unspin_auto_load *load, unspin_u32 set)
{
	return load->permille[set] != UNSPIN_UNKNOWN_HALF;
}

/* Between what this load was seen to spin under that set, which is known, and `permille`. */
static inline unspin_u32 unspin_auto_distance(const struct unspin_auto_load *load, unspin_u32 set, unspin_u32 permille)
{
	unspin_u32 known = load->permille[set];

	return known > permille ? known - permille : permille - known;
}

/* The load spun so much under that set, whatever was thought before. */
static inline void unspin_auto_load_begins_with(struct unspin_auto_load *load, unspin_u32 set, unspin_u32 permille)
{
	load->permille[set] = permille;
	load->disturbed &= ~(1u << set);
}

/* The load spun so much under that set: what is known of it follows slowly, an eighth of the way. */
static inline void unspin_auto_load_learns(struct unspin_auto_load *load, unspin_u32 set, unspin_u32 permille)
{
	_Bool known = unspin_auto_is_known(load, set);

	unspin_auto_load_begins_with(load, set, known ? (7 * load->permille[set] + permille) / 8 : permille);
}

/*
 * Which of these loads but `now` is nearest to spinning so much under that set; UNSPIN_AUTO_LOADS: none is near. `guess`: if none is,
 * the one that was there last of those of which it is not known.
 */
static inline unspin_u32 unspin_auto_load_like(const struct unspin_auto_load loads[UNSPIN_AUTO_LOADS], unspin_u32 now,
					       unspin_u32 set, unspin_u32 permille, _Bool guess)
{
	unspin_u32 at, found = UNSPIN_AUTO_LOADS, guessed = UNSPIN_AUTO_LOADS;
	unspin_u32 nearest = UNSPIN_AUTO_ALIKE_PERMILLE + 1;

	for (at = 0; at < UNSPIN_AUTO_LOADS; at++) {
		const struct unspin_auto_load *load = &loads[at];

		if (at == now || load->seen == 0)
			continue;
		if (!unspin_auto_is_known(load, set)) {
			if (guessed == UNSPIN_AUTO_LOADS || load->seen > loads[guessed].seen)
				guessed = at;
		} else if (unspin_auto_distance(load, set, permille) < nearest) {
			nearest = unspin_auto_distance(load, set, permille);
			found = at;
		}
	}
	return found == UNSPIN_AUTO_LOADS && guess ? guessed : found;
}

/* Where a further load is kept: a free place, or that of the one which was there longest ago; never `now`. */
static inline unspin_u32 unspin_auto_load_place(const struct unspin_auto_load loads[UNSPIN_AUTO_LOADS], unspin_u32 now)
{
	unspin_u32 at, place = now == 0;

	for (at = 0; at < UNSPIN_AUTO_LOADS; at++)
		if (at != now && loads[at].seen < loads[place].seen)
			place = at;
	return place;
}

#endif
