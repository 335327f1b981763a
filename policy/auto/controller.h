/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * controller.h - which set of policies a VM has, by trial: the policy `auto`.
 *
 * A VM begins with a set that was hardly ever worse than the kernel's own scheduler (docs/decisions/auto.md#choice), and keeps it while
 * its vCPUs hardly spin: there is nothing to win then. One that spins is given the other sets, one after another, each in epochs in
 * ABBA order against what acts (trial.h): the better one acts from then on. First guesses come from what is seen: guests that
 * spin in the kernel wait for locks more often than for answers. Where the part of time spent spinning changes by much, the load
 * has (loads.h): one that was there before has its own set again, for one that is new all are tried; and one at a time every minute.
 * Trials take 5 % of the time at most, but for the first minute of them. A VM that spins more than it did under the first set goes back
 * to that at once.
 *
 * It is called once an epoch for each VM, by user space or the lab. Nothing that one VM does moves another's state.
 */
#ifndef UNSPIN_POLICY_AUTO_CONTROLLER_H
#define UNSPIN_POLICY_AUTO_CONTROLLER_H

#include "state.h"

static inline void unspin_auto_begin_block(struct unspin_auto *vm)
{
	/* Marsaglia, Xorshift RNGs (2003), the triple 13, 7, 17. */
	vm->random ^= vm->random << 13;
	vm->random ^= vm->random >> 7;
	vm->random ^= vm->random << 17;
	vm->mirrored = (vm->random >> 32) & 1;
	vm->place = 0;
}

/* An epoch under that set is over: what was spent on trials. */
static inline void unspin_auto_spend(struct unspin_auto *vm, unspin_u32 set)
{
	const struct unspin_auto_load *load = unspin_auto_load_seen(vm);

	if (unspin_auto_is_trying(vm) && set == load->tried_now)
		vm->spent += vm->spent < UNSPIN_UNKNOWN_HALF ? UNSPIN_AUTO_TRIED_ONE_IN : 0;
	else if (vm->spent > 0)
		vm->spent--;
}

/* Whether a trial may begin. */
static inline _Bool unspin_auto_may_try(const struct unspin_auto *vm)
{
	return vm->spent < UNSPIN_AUTO_TRIED_ONE_IN * UNSPIN_AUTO_TRIED_AHEAD;
}

/* What was seen so far says nothing of epochs to come. */
static inline void unspin_auto_forget_odd(struct unspin_auto *vm)
{
	vm->odd_epochs = 0;
	vm->odd_sets = 0;
}

/* A trial begins, or goes on with the load that has come back. */
static inline void unspin_auto_begin_trial(struct unspin_auto *vm)
{
	vm->kept = unspin_auto_load_now(vm)->trial;
	vm->void_pairs = 0;
	vm->part = 0;
	unspin_auto_begin_block(vm);
}

static inline unspin_u32 unspin_auto_try(struct unspin_auto *vm, unspin_u32 set)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);

	load->tried_now = set;
	load->tried |= 1u << set;
	load->trial = (struct unspin_trial){};
	load->rests = 0;
	vm->idle_epochs = 0;
	unspin_auto_forget_odd(vm);
	unspin_auto_begin_trial(vm);
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
		if (!(unspin_auto_load_seen(vm)->tried & 1u << order[at]))
			return order[at];
	return UNSPIN_AUTO_SET_COUNT;
}

/* The trial is over. */
static inline unspin_u32 unspin_auto_conclude(struct unspin_auto *vm, unspin_u32 verdict)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);

	if (verdict == UNSPIN_TRIAL_BETTER) {
		load->acting = load->tried_now;
		load->disturbed |= 1u << load->acting;
	}
	load->tried_now = UNSPIN_AUTO_SET_COUNT;
	vm->idle_epochs = 0;
	unspin_auto_forget_odd(vm);
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
static inline _Bool unspin_auto_is_hasty(const struct unspin_auto_load *load)
{
	return unspin_auto_is_known(load, UNSPIN_AUTO_FIRST) &&
	       load->permille[UNSPIN_AUTO_FIRST] >= UNSPIN_AUTO_CONVOY_PERMILLE;
}

/* A pair is complete: what the trial says. While epochs are odd the load may have changed, and nothing is said until it must be. */
static inline unspin_u32 unspin_auto_end_of_pair(struct unspin_auto *vm, unspin_u64 rate, _Bool was_tried)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);

	unspin_trial_add(&load->trial, was_tried ? vm->first_rate : rate, was_tried ? rate : vm->first_rate);
	if (vm->odd_epochs != 0 && load->trial.pairs < UNSPIN_TRIAL_PAIRS)
		return UNSPIN_TRIAL_OPEN;
	vm->kept = load->trial;
	load->rests = 0;
	return unspin_trial_verdict(&load->trial, unspin_auto_is_hasty(load));
}

/* An epoch of a trial. A pair with an epoch that cannot be judged is left out. */
static inline unspin_u32 unspin_auto_end_of_trial_epoch(struct unspin_auto *vm, unspin_u64 rate, _Bool quiet)
{
	_Bool second = vm->place & 1, was_tried = unspin_auto_set_now(vm) == unspin_auto_load_now(vm)->tried_now;
	unspin_u32 verdict = UNSPIN_TRIAL_OPEN;

	if (unspin_auto_load_now(vm)->is_long && !unspin_auto_ends_long_epoch(vm, &rate, &quiet))
		return UNSPIN_AUTO_GOES_ON;
	if (!second) {
		vm->first_rate = rate;
		vm->void_pair = quiet;
	} else if (!quiet && !vm->void_pair) {
		verdict = unspin_auto_end_of_pair(vm, rate, was_tried);
	} else if (++vm->void_pairs >= UNSPIN_TRIAL_PAIRS) {
		verdict = UNSPIN_TRIAL_UNRESOLVED; /* it sleeps */
	}
	if (verdict != UNSPIN_TRIAL_OPEN)
		return unspin_auto_conclude(vm, verdict);
	if (++vm->place == 4)
		unspin_auto_begin_block(vm);
	return UNSPIN_AUTO_GOES_ON;
}

/*
 * Another load is there, of which that is known. A trial of the one that was there rests, without the pairs that were odd, and ends
 * where it would go on without end, or where nothing is left for trials: a load may never be there for a pair of long epochs.
 */
static inline void unspin_auto_load_comes(struct unspin_auto *vm, unspin_u32 which)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);

	if (unspin_auto_is_trying(vm)) {
		load->trial = vm->kept;
		if (vm->kept.pairs == 0)
			load->permille[load->tried_now] = UNSPIN_UNKNOWN_HALF;
		if (++load->rests >= UNSPIN_AUTO_RESTS || !unspin_auto_may_try(vm))
			load->tried_now = UNSPIN_AUTO_SET_COUNT;
	}
	load->seen = vm->visits;
	vm->load = which;
	vm->loads[which].seen = ++vm->visits;
	vm->visit_epochs = 0;
	unspin_auto_forget_odd(vm);
	unspin_auto_begin_trial(vm);
}

/* A load that was there before. If the one that it follows was not there for long, the next takes longer to be believed. */
static inline unspin_u32 unspin_auto_load_is_back(struct unspin_auto *vm, unspin_u32 which)
{
	if (vm->visit_epochs >= UNSPIN_AUTO_CALM_EPOCHS)
		vm->odd_to_go_back = vm->odd_to_go_back > 1 ? vm->odd_to_go_back / 2 : 1;
	else if (vm->odd_to_go_back < UNSPIN_AUTO_ODD_MOST_EPOCHS)
		vm->odd_to_go_back *= 2;
	unspin_auto_load_comes(vm, which);
	return UNSPIN_AUTO_LOAD_BACK;
}

/* All sets are to be tried: of a new load what acts against the first one first of all, or of this one, which goes back to that. */
static inline unspin_u32 unspin_auto_begin_anew(struct unspin_auto *vm, unspin_u32 reason)
{
	unspin_u32 acting = unspin_auto_load_now(vm)->acting;
	unspin_u32 first_permille = unspin_auto_load_now(vm)->permille[UNSPIN_AUTO_FIRST];

	if (reason == UNSPIN_AUTO_HARMS) {
		unspin_auto_load_begin(unspin_auto_load_now(vm), UNSPIN_AUTO_FIRST, vm->visits);
		unspin_auto_load_now(vm)->permille[UNSPIN_AUTO_FIRST] = first_permille;
		unspin_auto_forget_odd(vm);
	} else {
		unspin_u32 place = unspin_auto_load_place(vm->loads, vm->load);

		unspin_auto_load_begin(&vm->loads[place], acting, vm->visits);
		unspin_auto_load_comes(vm, place);
	}
	vm->idle_epochs = 0;
	vm->new_epochs = 0;
	return reason;
}

/* Whether what is spun now says little: a convoy may have to drain, for a long epoch's first half, or once the set has changed. */
static inline _Bool unspin_auto_drains(const struct unspin_auto *vm)
{
	unspin_u32 epochs = unspin_auto_load_seen(vm)->is_long ? UNSPIN_AUTO_LONG_EPOCHS : 1;

	if (unspin_auto_is_trying(vm))
		return vm->part < epochs / 2;
	return vm->idle_epochs < epochs || vm->visit_epochs < epochs;
}

/* Whether the VM has spun so much more than under the first set that what acts does harm. */
static inline _Bool unspin_auto_harms(const struct unspin_auto *vm, unspin_u32 permille)
{
	const struct unspin_auto_load *load = unspin_auto_load_seen(vm);

	return !unspin_auto_is_trying(vm) && load->acting != UNSPIN_AUTO_FIRST &&
	       unspin_auto_is_known(load, UNSPIN_AUTO_FIRST) &&
	       permille > load->permille[UNSPIN_AUTO_FIRST] + UNSPIN_AUTO_HARM_PERMILLE;
}

/* An epoch that was not as expected: what follows from it and those before. */
static inline unspin_u32 unspin_auto_odd_epoch(struct unspin_auto *vm, unspin_u32 set, unspin_u32 permille)
{
	_Bool trying = unspin_auto_is_trying(vm);
	unspin_u32 enough = trying ? UNSPIN_AUTO_ODD_TRIAL_EPOCHS : UNSPIN_AUTO_ODD_EPOCHS;
	_Bool disturbed = unspin_auto_load_now(vm)->disturbed >> set & 1;
	_Bool guess = vm->odd_epochs + 1 >= enough && vm->visit_epochs >= UNSPIN_AUTO_CALM_EPOCHS && !disturbed;
	unspin_u32 like = unspin_auto_load_like(vm->loads, vm->load, set, permille, guess);

	vm->odd_epochs++;
	vm->odd_sets |= 1u << set;
	if (like < UNSPIN_AUTO_LOADS && vm->odd_epochs >= vm->odd_to_go_back)
		return unspin_auto_load_is_back(vm, like);
	if (like == UNSPIN_AUTO_LOADS && disturbed) {
		unspin_auto_load_begins_with(unspin_auto_load_now(vm), set, permille);
		unspin_auto_forget_odd(vm);
		return UNSPIN_AUTO_GOES_ON;
	}
	if (vm->odd_epochs < enough)
		return UNSPIN_AUTO_GOES_ON;
	if (unspin_auto_harms(vm, permille))
		return unspin_auto_begin_anew(vm, UNSPIN_AUTO_HARMS);
	if (vm->new_epochs >= UNSPIN_AUTO_CALM_EPOCHS && (trying || vm->idle_epochs >= UNSPIN_AUTO_CALM_EPOCHS))
		return unspin_auto_begin_anew(vm, UNSPIN_AUTO_LOAD_CHANGED);
	return UNSPIN_AUTO_GOES_ON;
}

/* A load of which nothing is known yet turns out to be one that was there before: it is that one, and not kept as another. */
static inline _Bool unspin_auto_was_known(struct unspin_auto *vm, unspin_u32 set, unspin_u32 permille)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);
	unspin_u32 like = unspin_auto_load_like(vm->loads, vm->load, set, permille, 0);

	if (unspin_auto_is_known(load, set) || load->tried != 1u << set || unspin_auto_is_trying(vm) ||
	    like == UNSPIN_AUTO_LOADS)
		return 0;
	unspin_auto_load_comes(vm, like);
	load->seen = 0;
	return 1;
}

/* Whether the load that is there is still the same, by what was spun in an epoch under that set. */
static inline unspin_u32 unspin_auto_watch_load(struct unspin_auto *vm, unspin_u32 set, unspin_u32 permille)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);
	_Bool drains = unspin_auto_drains(vm);
	_Bool changed = unspin_auto_is_known(load, set) &&
			unspin_auto_distance(load, set, permille) > UNSPIN_AUTO_CHANGE_PERMILLE;

	if (vm->visit_epochs < UNSPIN_UNKNOWN_HALF)
		vm->visit_epochs++;
	if (vm->new_epochs < UNSPIN_UNKNOWN_HALF)
		vm->new_epochs++;
	if (drains) {
		/* Nothing is learned, but what is seen may be known. */
		unspin_u32 like = unspin_auto_load_like(vm->loads, vm->load, set, permille, 0);

		if (changed && like < UNSPIN_AUTO_LOADS && unspin_auto_is_trying(vm) && vm->odd_to_go_back == 1)
			return unspin_auto_load_is_back(vm, like);
		return UNSPIN_AUTO_GOES_ON;
	}
	if (unspin_auto_was_known(vm, set, permille))
		return UNSPIN_AUTO_LOAD_BACK;
	if (changed || unspin_auto_harms(vm, permille))
		return unspin_auto_odd_epoch(vm, set, permille);
	if (set == load->acting) {
		/* It is the same load: what it seemed to spin under others was wrong. */
		load->disturbed |= vm->odd_sets;
		unspin_auto_forget_odd(vm);
	}
	unspin_auto_load_learns(load, set, permille);
	return UNSPIN_AUTO_GOES_ON;
}

/* An epoch without a trial. */
static inline unspin_u32 unspin_auto_end_of_idle_epoch(struct unspin_auto *vm, const struct unspin_useful_time *grown,
						       unspin_u32 permille)
{
	struct unspin_auto_load *load = unspin_auto_load_now(vm);
	unspin_u32 next = unspin_auto_untried(vm, grown);
	unspin_u32 retest =
		load->is_long ? UNSPIN_AUTO_LONG_EPOCHS * UNSPIN_AUTO_RETEST_EPOCHS : UNSPIN_AUTO_RETEST_EPOCHS;

	vm->idle_epochs++;
	if (next == UNSPIN_AUTO_SET_COUNT && !load->is_long && load->acting == UNSPIN_AUTO_FIRST &&
	    permille >= UNSPIN_AUTO_CONVOY_PERMILLE) {
		load->is_long = 1;
		load->tried = 1u << UNSPIN_AUTO_FIRST;
		load->disturbed = ~(1u << UNSPIN_AUTO_FIRST);
		next = unspin_auto_untried(vm, grown);
	}
	/* A trial begins with a load that is what it seems. */
	if (vm->odd_epochs != 0 || !unspin_auto_is_known(load, load->acting) || !unspin_auto_may_try(vm))
		return UNSPIN_AUTO_GOES_ON;
	if (next < UNSPIN_AUTO_SET_COUNT && permille >= UNSPIN_AUTO_SPINS_PERMILLE)
		return unspin_auto_try(vm, next);
	if (vm->idle_epochs < retest || (permille < UNSPIN_AUTO_SPINS_PERMILLE && load->acting == UNSPIN_AUTO_FIRST))
		return UNSPIN_AUTO_GOES_ON;
	load->next_retest = (load->next_retest + 1) % UNSPIN_AUTO_SET_COUNT;
	if (load->next_retest == load->acting)
		load->next_retest = (load->next_retest + 1) % UNSPIN_AUTO_SET_COUNT;
	return unspin_auto_try(vm, load->next_retest);
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
	unspin_u32 set = unspin_auto_set_now(vm), reason = UNSPIN_AUTO_GOES_ON;

	unspin_auto_spend(vm, set);
	if (!quiet)
		reason = unspin_auto_watch_load(vm, set, permille);
	if (reason != UNSPIN_AUTO_GOES_ON)
		return reason;
	if (unspin_auto_is_trying(vm))
		return unspin_auto_end_of_trial_epoch(vm, rate, quiet);
	return quiet ? UNSPIN_AUTO_GOES_ON : unspin_auto_end_of_idle_epoch(vm, grown, permille);
}

#endif
