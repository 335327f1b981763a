/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * controller.h - which set of policies a VM has, by trial: the policy `auto`.
 *
 * A VM begins with a set that was hardly ever worse than the kernel's own scheduler (docs/decisions/auto.md#choice), and keeps it while
 * its vCPUs hardly spin: there is nothing to win then. One that spins is given the other sets, one after another, each in epochs in
 * ABBA order against what acts (trial.h): the better one acts from then on. First guesses come from what is seen: guests that
 * spin in the kernel wait for locks more often than for answers. Where the part of time spent spinning changes by much, the load
 * has, and all are tried again; and one at a time every minute, which takes 5 % of the time at most. A VM that spins more than it
 * did under the first set goes back to that at once.
 *
 * It is called once an epoch for each VM, by user space or the lab. Nothing that one VM does moves another's state.
 */
#ifndef UNSPIN_POLICY_AUTO_CONTROLLER_H
#define UNSPIN_POLICY_AUTO_CONTROLLER_H

#include "../steering/policies.h"
#include "trial.h"
#include "useful_time.h"

/* What is chosen among: the name, and policies as bits. Every VM begins with the first. */
#define UNSPIN_AUTO_SETS(X)                                                                                            \
	X(strict, unspin_policy_kernel_exit | UNSPIN_POLICY_CANDIDATES)                                                \
	X(loan, UNSPIN_AUTO_LOAN)                                                                                      \
	X(loan_strict, UNSPIN_AUTO_LOAN | UNSPIN_POLICY_CANDIDATES)                                                    \
	X(directed_yield, unspin_policy_directed_yield)
#define UNSPIN_AUTO_LOAN                                                                                               \
	(unspin_policy_loan | unspin_policy_loan_cpl | unspin_policy_kernel_exit | UNSPIN_POLICY_SPIN_SAMPLES)
#define UNSPIN_AUTO_FIRST UNSPIN_AUTO_strict

enum unspin_auto_set {
#define UNSPIN_AUTO_SET(name, policies) UNSPIN_AUTO_##name,
	UNSPIN_AUTO_SETS(UNSPIN_AUTO_SET)
#undef UNSPIN_AUTO_SET
		UNSPIN_AUTO_SET_COUNT
};

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
/* So much more or less than it was, twice in a row, is another load; so much more than under the first set is harm. */
#define UNSPIN_AUTO_CHANGE_PERMILLE 150u
#define UNSPIN_AUTO_HARM_PERMILLE 50u
/* A VM that is in its guest for less than this part of one CPU does nothing that could be judged: 65536 / 50. */
#define UNSPIN_AUTO_QUIET_RATE 1310u
/*
 * Epochs between trials of one set when nothing changes, four times as many if they are long: 24 of a trial, half of them under the
 * other set, are 4 % of all.
 */
#define UNSPIN_AUTO_RETEST_EPOCHS 276u
/*
 * Epochs after a trial in which another change of load is not looked for: at first, and at most. It doubles with each change and with
 * each harm, and is short again after a calm time. From the second change on half of it goes by before each trial, too: a load that
 * changes without end is tried for 24 epochs of 280 at most, long ones four times as many, half of them under another set.
 */
#define UNSPIN_AUTO_PATIENCE_EPOCHS 8u
#define UNSPIN_AUTO_PATIENCE_MOST_EPOCHS 512u

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
	UNSPIN_AUTO_LOAD_CHANGED = 5, /* all sets are to be tried again */
	UNSPIN_AUTO_HARMS = 6,	      /* back to the first set */
};

/* One VM. */
struct unspin_auto {
	struct unspin_trial trial;
	unspin_u64 first_rate;	      /* of the pair that is half done */
	unspin_u64 random;	      /* xorshift64; not 0 */
	unspin_u32 acting;	      /* enum unspin_auto_set */
	unspin_u32 tried_now;	      /* the set on trial; UNSPIN_AUTO_SET_COUNT: none */
	unspin_u32 tried;	      /* bits: sets that were tried since the load changed */
	unspin_u32 place;	      /* of the epoch in its block of four */
	unspin_u32 mirrored;	      /* 1: this block is BAAB */
	unspin_u32 void_pair;	      /* 1: the pair's first epoch cannot be judged */
	unspin_u32 idle_epochs;	      /* since the last trial */
	unspin_u32 patience;	      /* epochs for which changes are not looked for, after the last trial */
	unspin_u32 odd_epochs;	      /* in a row that were not as expected */
	unspin_u32 expected_permille; /* spun under the set that acts; UNSPIN_UNKNOWN_HALF: not known yet */
	unspin_u32
		first_permille; /* spun under the first set when that was seen last; UNSPIN_UNKNOWN_HALF: not known */
	unspin_u32 next_retest; /* the set that is tried again next */
	unspin_u32 restless;	/* 1: a change was seen since the last trial, and left alone */
	unspin_u32 is_long;	/* 1: epochs of trials are long, until the load changes */
	unspin_u32 part;	/* of a long epoch: epochs that are over */
	unspin_u32 quiet_part;	/* 1: one of them cannot be judged */
	unspin_u64 part_rate;	/* sum over those of its second half */
};
UNSPIN_ASSERT_SIZE(struct unspin_auto, 120);

/* The policies of a set; the rule of candidates that goes with UNSPIN_POLICY_CANDIDATES is UNSPIN_CANDIDATES_STRICT. */
static inline unspin_u32 unspin_auto_policies(unspin_u32 set)
{
	static const unspin_u32 policies[UNSPIN_AUTO_SET_COUNT] = {
#define UNSPIN_AUTO_POLICIES(name, bits) bits,
		UNSPIN_AUTO_SETS(UNSPIN_AUTO_POLICIES)
#undef UNSPIN_AUTO_POLICIES
	};

	return set < UNSPIN_AUTO_SET_COUNT ? policies[set] : 0;
}

/* A VM has come; `seed` decides on orders of trials. */
static inline void unspin_auto_start(struct unspin_auto *vm, unspin_u64 seed)
{
	*vm = (struct unspin_auto){
		.random = seed | 1,
		.acting = UNSPIN_AUTO_FIRST,
		.tried_now = UNSPIN_AUTO_SET_COUNT,
		.tried = 1u << UNSPIN_AUTO_FIRST,
		.expected_permille = UNSPIN_UNKNOWN_HALF,
		.first_permille = UNSPIN_UNKNOWN_HALF,
		.patience = UNSPIN_AUTO_PATIENCE_EPOCHS,
	};
}

/* Whether a trial is going on: then the first UNSPIN_AUTO_SETTLE_NS of the epoch are left out. */
static inline _Bool unspin_auto_is_trying(const struct unspin_auto *vm)
{
	return vm->tried_now < UNSPIN_AUTO_SET_COUNT;
}

/* The set under which the epoch to come runs: of a block of four the second and third, or the first and last. */
static inline unspin_u32 unspin_auto_set_now(const struct unspin_auto *vm)
{
	_Bool inner = vm->place == 1 || vm->place == 2;

	return unspin_auto_is_trying(vm) && inner != vm->mirrored ? vm->tried_now : vm->acting;
}

static inline void unspin_auto_begin_block(struct unspin_auto *vm)
{
	/* Marsaglia, Xorshift RNGs (2003), the triple 13, 7, 17. */
	vm->random ^= vm->random << 13;
	vm->random ^= vm->random >> 7;
	vm->random ^= vm->random << 17;
	vm->mirrored = (vm->random >> 32) & 1;
	vm->place = 0;
}

static inline unspin_u32 unspin_auto_try(struct unspin_auto *vm, unspin_u32 set)
{
	vm->tried_now = set;
	vm->tried |= 1u << set;
	vm->trial = (struct unspin_trial){};
	vm->odd_epochs = 0;
	vm->restless = 0;
	vm->part = 0;
	unspin_auto_begin_block(vm);
	return UNSPIN_AUTO_TRIES;
}

/* The set to try next; UNSPIN_AUTO_SET_COUNT: all were. Spinning in user mode is not for the kernel's locks. */
static inline unspin_u32 unspin_auto_untried(const struct unspin_auto *vm, const struct unspin_useful_time *grown)
{
	static const unspin_u32 for_kernel[] = {UNSPIN_AUTO_FIRST, UNSPIN_AUTO_loan, UNSPIN_AUTO_loan_strict,
						UNSPIN_AUTO_directed_yield};
	static const unspin_u32 for_user[] = {UNSPIN_AUTO_FIRST, UNSPIN_AUTO_directed_yield, UNSPIN_AUTO_loan_strict,
					      UNSPIN_AUTO_loan};
	const unspin_u32 *order = grown->user_spin_exits > grown->spin_exits / 2 ? for_user : for_kernel;
	unspin_u32 at;

	for (at = 0; at < UNSPIN_AUTO_SET_COUNT; at++)
		if (!(vm->tried & 1u << order[at]))
			return order[at];
	return UNSPIN_AUTO_SET_COUNT;
}

/* The trial is over. */
static inline unspin_u32 unspin_auto_conclude(struct unspin_auto *vm, unspin_u32 verdict)
{
	if (verdict == UNSPIN_TRIAL_BETTER)
		vm->acting = vm->tried_now;
	vm->tried_now = UNSPIN_AUTO_SET_COUNT;
	vm->idle_epochs = 0;
	vm->expected_permille = UNSPIN_UNKNOWN_HALF;
	if (verdict == UNSPIN_TRIAL_BETTER)
		return UNSPIN_AUTO_BETTER;
	return verdict == UNSPIN_TRIAL_NOT_BETTER ? UNSPIN_AUTO_NOT_BETTER : UNSPIN_AUTO_NOT_RESOLVED;
}

/*
 * Adds an epoch to a long one. Whether that is over; then *rate and *quiet are those of its second half.
 */
static inline _Bool unspin_auto_ends_long_epoch(struct unspin_auto *vm, unspin_u64 *rate, _Bool *quiet)
{
	if (vm->part == 0) {
		vm->part_rate = 0;
		vm->quiet_part = 0;
	}
	if (vm->part++ >= UNSPIN_AUTO_LONG_EPOCHS / 2) {
		vm->part_rate += *rate;
		vm->quiet_part |= *quiet;
	}
	if (vm->part < UNSPIN_AUTO_LONG_EPOCHS)
		return 0;
	vm->part = 0;
	*rate = vm->part_rate;
	*quiet = vm->quiet_part;
	return 1;
}

/*
 * Whether two pairs that lost a tenth drop a set: of a VM that spins much under the first one. With three pairs for those, too, trials
 * of shootdown guests went on for longer than 20 s (docs/decisions/auto.md#trials).
 */
static inline _Bool unspin_auto_is_hasty(const struct unspin_auto *vm)
{
	return vm->first_permille != UNSPIN_UNKNOWN_HALF && vm->first_permille >= UNSPIN_AUTO_CONVOY_PERMILLE;
}

/* An epoch of a trial. A pair with an epoch that cannot be judged is left out. */
static inline unspin_u32 unspin_auto_end_of_trial_epoch(struct unspin_auto *vm, unspin_u64 rate, _Bool quiet)
{
	_Bool second = vm->place & 1, was_tried = unspin_auto_set_now(vm) == vm->tried_now;
	unspin_u32 verdict = UNSPIN_TRIAL_OPEN;

	if (vm->is_long && !unspin_auto_ends_long_epoch(vm, &rate, &quiet))
		return UNSPIN_AUTO_GOES_ON;
	if (!second) {
		vm->first_rate = rate;
		vm->void_pair = quiet;
	} else if (!quiet && !vm->void_pair) {
		unspin_trial_add(&vm->trial, was_tried ? vm->first_rate : rate, was_tried ? rate : vm->first_rate);
		verdict = unspin_trial_verdict(&vm->trial, unspin_auto_is_hasty(vm));
	} else if (++vm->odd_epochs >= UNSPIN_TRIAL_PAIRS) {
		verdict = UNSPIN_TRIAL_UNRESOLVED; /* it sleeps */
	}
	if (verdict != UNSPIN_TRIAL_OPEN)
		return unspin_auto_conclude(vm, verdict);
	if (++vm->place == 4)
		unspin_auto_begin_block(vm);
	return UNSPIN_AUTO_GOES_ON;
}

/* Epochs to wait for before the next trial. */
static inline unspin_u32 unspin_auto_pause(const struct unspin_auto *vm)
{
	unspin_u32 pause = vm->patience > 2 * UNSPIN_AUTO_PATIENCE_EPOCHS ? vm->patience / 2 : 0;

	return vm->is_long ? UNSPIN_AUTO_LONG_EPOCHS * pause : pause;
}

/* All sets are to be tried again, what acts against the first one first of all. */
static inline unspin_u32 unspin_auto_begin_anew(struct unspin_auto *vm, unspin_u32 reason)
{
	if (reason == UNSPIN_AUTO_HARMS)
		vm->acting = UNSPIN_AUTO_FIRST;
	vm->tried = 1u << vm->acting;
	vm->is_long = 0;
	vm->expected_permille = UNSPIN_UNKNOWN_HALF;
	vm->odd_epochs = 0;
	vm->idle_epochs = 0;
	if (vm->patience < UNSPIN_AUTO_PATIENCE_MOST_EPOCHS)
		vm->patience *= 2;
	return reason;
}

/* Twice in a row not as expected: the reason, or UNSPIN_AUTO_GOES_ON. */
static inline unspin_u32 unspin_auto_is_odd(struct unspin_auto *vm, unspin_u32 permille)
{
	unspin_u32 expected = vm->expected_permille;
	_Bool known = expected != UNSPIN_UNKNOWN_HALF;
	_Bool more = known && permille > expected + UNSPIN_AUTO_CHANGE_PERMILLE;
	_Bool less = known && permille + UNSPIN_AUTO_CHANGE_PERMILLE < expected;
	_Bool harms = vm->acting != UNSPIN_AUTO_FIRST && vm->first_permille != UNSPIN_UNKNOWN_HALF &&
		      permille > vm->first_permille + UNSPIN_AUTO_HARM_PERMILLE;

	if (!more && !less && !harms) {
		vm->odd_epochs = 0;
		/* Follows slowly: an eighth of the way. */
		vm->expected_permille = known ? (7 * expected + permille) / 8 : permille;
		return UNSPIN_AUTO_GOES_ON;
	}
	if (++vm->odd_epochs < 2)
		return UNSPIN_AUTO_GOES_ON;
	return harms ? UNSPIN_AUTO_HARMS : UNSPIN_AUTO_LOAD_CHANGED;
}

/* An epoch without a trial. */
static inline unspin_u32 unspin_auto_end_of_idle_epoch(struct unspin_auto *vm, const struct unspin_useful_time *grown,
						       unspin_u32 permille)
{
	unspin_u32 next = unspin_auto_untried(vm, grown), odd;
	unspin_u32 retest =
		vm->is_long ? UNSPIN_AUTO_LONG_EPOCHS * UNSPIN_AUTO_RETEST_EPOCHS : UNSPIN_AUTO_RETEST_EPOCHS;

	vm->idle_epochs++;
	if (next == UNSPIN_AUTO_SET_COUNT && !vm->is_long && vm->acting == UNSPIN_AUTO_FIRST &&
	    permille >= UNSPIN_AUTO_CONVOY_PERMILLE) {
		vm->is_long = 1;
		vm->tried = 1u << UNSPIN_AUTO_FIRST;
		next = unspin_auto_untried(vm, grown);
	}
	if (next < UNSPIN_AUTO_SET_COUNT && permille >= UNSPIN_AUTO_SPINS_PERMILLE &&
	    vm->idle_epochs > unspin_auto_pause(vm))
		return unspin_auto_try(vm, next);
	/* A convoy may still have to drain. */
	if (vm->is_long && vm->idle_epochs <= UNSPIN_AUTO_LONG_EPOCHS)
		return UNSPIN_AUTO_GOES_ON;
	odd = unspin_auto_is_odd(vm, permille);
	if (odd == UNSPIN_AUTO_HARMS || (odd == UNSPIN_AUTO_LOAD_CHANGED && vm->idle_epochs >= vm->patience))
		return unspin_auto_begin_anew(vm, odd);
	vm->restless |= odd == UNSPIN_AUTO_LOAD_CHANGED;
	if (vm->idle_epochs < retest || (permille < UNSPIN_AUTO_SPINS_PERMILLE && vm->acting == UNSPIN_AUTO_FIRST))
		return UNSPIN_AUTO_GOES_ON;
	if (!vm->restless)
		vm->patience = UNSPIN_AUTO_PATIENCE_EPOCHS;
	vm->next_retest = (vm->next_retest + 1) % UNSPIN_AUTO_SET_COUNT;
	if (vm->next_retest == vm->acting)
		vm->next_retest = (vm->next_retest + 1) % UNSPIN_AUTO_SET_COUNT;
	return unspin_auto_try(vm, vm->next_retest);
}

/*
 * The VM's epoch has ended: enum unspin_auto_reason. Then unspin_auto_set_now() is the set of the next one. length_ns is above 0.
 */
static inline unspin_u32 unspin_auto_end_of_epoch(struct unspin_auto *vm, const struct unspin_auto_epoch *epoch)
{
	const struct unspin_useful_time *grown = &epoch->grown;
	unspin_u64 useful_ns = grown->guest_ns > grown->spin_ns ? grown->guest_ns - grown->spin_ns : 0;
	/* Time in the guest in 65536ths of one CPU: an epoch is seconds long at most, so nothing leaves 64 bits. */
	unspin_u64 guest_rate = (grown->guest_ns << 16) / epoch->length_ns;
	unspin_u64 rate = (useful_ns << 16) / epoch->length_ns;
	unspin_u64 exits_ns = grown->spin_exits < UNSPIN_UNKNOWN_HALF ? grown->spin_exits * UNSPIN_AUTO_EXIT_NS : 0;
	unspin_u32 permille = unspin_spin_permille(grown->guest_ns + exits_ns, grown->spin_ns + exits_ns);
	_Bool quiet = guest_rate < UNSPIN_AUTO_QUIET_RATE;

	if (!quiet && unspin_auto_set_now(vm) == UNSPIN_AUTO_FIRST)
		vm->first_permille =
			vm->first_permille == UNSPIN_UNKNOWN_HALF ? permille : (3 * vm->first_permille + permille) / 4;
	if (unspin_auto_is_trying(vm))
		return unspin_auto_end_of_trial_epoch(vm, rate, quiet);
	return quiet ? UNSPIN_AUTO_GOES_ON : unspin_auto_end_of_idle_epoch(vm, grown, permille);
}

#endif
