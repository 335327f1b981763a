/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * state.h - what the policy `auto` keeps of a VM, how long its epochs are, and what it may spend on trials (controller.h).
 */
#ifndef UNSPIN_POLICY_AUTO_STATE_H
#define UNSPIN_POLICY_AUTO_STATE_H

#include "loads.h"
#include "useful_time.h"

/*
 * An epoch, and what of it is left out when sets change, ns. Ours: a silent guest that has 8 vCPUs on one CPU is still in the convoy
 * that refused yields caused after 60 ms, and no longer after 250 (docs/known-issues.md); 100 ms are more than 20 slices.
 */
#define UNSPIN_AUTO_EPOCH_NS 250000000u
#define UNSPIN_AUTO_SETTLE_NS 100000000u
/*
 * A convoy may take longer than that to drain: at KVM's default window a waiter is seen once in its slice. Where no set is better in
 * such epochs and a vCPU spins for more than a fifth of its time, all are tried once more in epochs four times as long, of which the
 * first half is left out. Ours.
 */
#define UNSPIN_AUTO_LONG_EPOCHS 4u
#define UNSPIN_AUTO_CONVOY_PERMILLE 200u

/*
 * All from here on are ours, and none is fitted to a figure. Parts spun in a thousand of the time in the guest from which on something
 * is to be won.
 */
#define UNSPIN_AUTO_SPINS_PERMILLE 20u
/*
 * What a pause-loop exit counts as, beside the spinning, where it is asked whether a VM spins at all: hardware that leaves at every
 * PAUSE spends a convoy's time there. Ours: handling one took 0.26 us on old hardware (docs/facts.md#numbers), switches come on top.
 */
#define UNSPIN_AUTO_EXIT_NS 2000u
/* So much more than under the first set is harm. */
#define UNSPIN_AUTO_HARM_PERMILLE 50u
/*
 * Epochs in a row that were not as expected, after which the load has changed: outside of trials, and in one, where sets disturb each
 * other. One is enough if it is as another load is known to be.
 */
#define UNSPIN_AUTO_ODD_EPOCHS 2u
#define UNSPIN_AUTO_ODD_TRIAL_EPOCHS 3u
/* A VM that is in its guest for less than this part of one CPU does nothing that could be judged: 65536 / 50. */
#define UNSPIN_AUTO_QUIET_RATE 1310u
/*
 * Epochs between trials of one set when nothing changes, four times as many if they are long: 24 of a trial, half of them under the
 * other set, are 4 % of all.
 */
#define UNSPIN_AUTO_RETEST_EPOCHS 276u
/*
 * One epoch in so many may be under a set on trial, and so many more of these for the first loads: a trial begins while there are some
 * left. A minute: all sets take 36 of them in short epochs at most, and 144 in long ones.
 */
#define UNSPIN_AUTO_TRIED_ONE_IN 20u
#define UNSPIN_AUTO_TRIED_AHEAD 240u
/*
 * Epochs after a trial and after a new load in which another new one is not looked for. A load that was there before and stayed for
 * fewer came too soon: the next one needs twice as many odd epochs, up to so many, so that loads which change quickly are left alone.
 */
#define UNSPIN_AUTO_CALM_EPOCHS 8u
#define UNSPIN_AUTO_ODD_MOST_EPOCHS 512u
/* Times that another load interrupts a trial without a pair in between, after which it is not resolved. */
#define UNSPIN_AUTO_RESTS 4u

/* What one VM did in an epoch: the part of it that was measured. */
struct unspin_auto_epoch {
	unspin_u64 length_ns;
	struct unspin_useful_time grown;
};
UNSPIN_ASSERT_SIZE(struct unspin_auto_epoch, 56);

/* What an epoch's end has led to. */
enum unspin_auto_reason {
	UNSPIN_AUTO_GOES_ON = 0,
	UNSPIN_AUTO_TRIES = 1,	      /* a trial begins */
	UNSPIN_AUTO_BETTER = 2,	      /* the set on trial acts from now on */
	UNSPIN_AUTO_NOT_BETTER = 3,   /* it does not */
	UNSPIN_AUTO_NOT_RESOLVED = 4, /* the same, for want of a clear figure */
	UNSPIN_AUTO_LOAD_CHANGED = 5, /* a load that is not known: all sets are to be tried */
	UNSPIN_AUTO_HARMS = 6,	      /* back to the first set */
	UNSPIN_AUTO_LOAD_BACK = 7,    /* a load that was there before */
};

/* One VM. */
struct unspin_auto {
	struct unspin_auto_load loads[UNSPIN_AUTO_LOADS];
	struct unspin_trial kept; /* the trial that is going on, before epochs were odd */
	unspin_u64 first_rate;	  /* of the pair that is half done */
	unspin_u64 random;	  /* xorshift64; not 0 */
	unspin_u64 part_rate;	  /* of a long epoch: sum over the epochs of its second half */
	unspin_u32 load;	  /* which is there */
	unspin_u32 visits;	  /* times that a load came, the first one counted */
	unspin_u32 visit_epochs;  /* since it came */
	unspin_u32 new_epochs;	  /* since the last new load or harm */
	unspin_u32 place;	  /* of the epoch in its block of four */
	unspin_u32 mirrored;	  /* 1: this block is BAAB */
	unspin_u32 void_pair;	  /* 1: the pair's first epoch cannot be judged */
	unspin_u32 void_pairs;	  /* of this trial */
	unspin_u32 idle_epochs;	  /* without a trial, since one began or ended */
	unspin_u32 spent; /* UNSPIN_AUTO_TRIED_ONE_IN times the epochs under sets on trial, less the other ones */
	unspin_u32 unused;
	unspin_u32 odd_epochs;	   /* in a row, by set, that were not as expected */
	unspin_u32 odd_sets;	   /* bits: under which sets */
	unspin_u32 odd_to_go_back; /* odd epochs that it takes to go back to a load that was there before */
	unspin_u32 part;	   /* of a long epoch: epochs that are over */
	unspin_u32 quiet_part;	   /* 1: one of them cannot be judged */
};
UNSPIN_ASSERT_SIZE(struct unspin_auto, 440);

/* A VM has come; `seed` decides on orders of trials. */
static inline void unspin_auto_start(struct unspin_auto *vm, unspin_u64 seed)
{
	*vm = (struct unspin_auto){
		.random = seed | 1,
		.visits = 1,
		.odd_to_go_back = 1,
	};
	unspin_auto_load_begin(&vm->loads[0], UNSPIN_AUTO_FIRST, vm->visits);
}

/* What is known of the load that is there. */
static inline struct unspin_auto_load *unspin_auto_load_now(struct unspin_auto *vm)
{
	return &vm->loads[vm->load % UNSPIN_AUTO_LOADS];
}

/* The same, to be read only. */
static inline const struct unspin_auto_load *unspin_auto_load_seen(const struct unspin_auto *vm)
{
	return &vm->loads[vm->load % UNSPIN_AUTO_LOADS];
}

/* Whether a trial is going on: then the first UNSPIN_AUTO_SETTLE_NS of the epoch are left out. */
static inline _Bool unspin_auto_is_trying(const struct unspin_auto *vm)
{
	return unspin_auto_load_seen(vm)->tried_now < UNSPIN_AUTO_SET_COUNT;
}

/* The set under which the epoch to come runs: of a block of four the second and third, or the first and last. */
static inline unspin_u32 unspin_auto_set_now(const struct unspin_auto *vm)
{
	const struct unspin_auto_load *load = unspin_auto_load_seen(vm);
	_Bool inner = vm->place == 1 || vm->place == 2;

	return unspin_auto_is_trying(vm) && inner != vm->mirrored ? load->tried_now : load->acting;
}

#endif
