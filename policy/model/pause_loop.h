/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * pause_loop.h - the hardware that stops a spinning vCPU, as functions: which PAUSE exits.
 *
 * Intel (SDM vol. 3, 26.1.3 "Instructions That Cause VM Exits Conditionally", PAUSE): at CPL 0 only. A PAUSE more than
 * PLE_Gap after the last one at CPL 0, or the first after VM entry, is the first of a loop. Any other exits when more than
 * PLE_Window has passed since the first of its loop. Time is in TSC cycles.
 *
 * AMD (APM vol. 2, 15.14.4 "Pause Intercept Filtering"): at any CPL. VMRUN loads a count. A PAUSE more than the threshold
 * after the last one loads it again. With nothing left of it the PAUSE exits, otherwise it takes one: an exit for every
 * count + 1 PAUSEs. A threshold of 0: never loaded again. A count of 0: every PAUSE exits. The manual does not say of the
 * PAUSE that loads the count whether it takes one as well; here it does, as in the testbed (testbed/qemu/).
 *
 * A spinner PAUSEs at a steady pace, so a simulator need not execute each: it computes once which one will exit.
 */
#ifndef UNSPIN_POLICY_MODEL_PAUSE_LOOP_H
#define UNSPIN_POLICY_MODEL_PAUSE_LOOP_H

#include "../../abi/types.h"

enum unspin_pause_kind {
	UNSPIN_PAUSE_NO_EXITS = 0,
	UNSPIN_PAUSE_INTEL = 1,
	UNSPIN_PAUSE_AMD = 2,
};

struct unspin_pause_hardware {
	unspin_u32 kind;       /* enum unspin_pause_kind */
	unspin_u32 gap_cycles; /* Intel: PLE_Gap. AMD: threshold, 0: none. */
	unspin_u32 window;     /* of this vCPU. Intel: TSC cycles. AMD: PAUSEs, 16 bits. */
};
UNSPIN_ASSERT_SIZE(struct unspin_pause_hardware, 12);

/* What the hardware keeps of one vCPU. Zeroes, then unspin_pause_entered(). Times are the TSC's. */
struct unspin_pause_loop {
	unspin_u64 first_cycles; /* Intel: the first PAUSE of the loop */
	unspin_u64 last_cycles;	 /* the last PAUSE */
	unspin_u32 left;	 /* AMD: so many PAUSEs pass */
	unspin_u32 paused;	 /* Intel: 1: there was one at CPL 0 since VM entry */
};
UNSPIN_ASSERT_SIZE(struct unspin_pause_loop, 24);

/* PAUSEs to come at a steady pace: the first, and the time from one to the next. */
struct unspin_spin {
	unspin_u64 first_cycles; /* not before the loop's last one */
	unspin_u64 period_cycles;
	unspin_u32 user; /* 1: at CPL 3; 0: at CPL 0 */
	unspin_u32 unused;
};
UNSPIN_ASSERT_SIZE(struct unspin_spin, 24);

#define UNSPIN_PAUSE_NEVER 0xffffffffffffffffull

/* The guest is entered. */
static inline void unspin_pause_entered(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop)
{
	loop->paused = 0;
	loop->left = hardware->window;
}

/* Whether `later` is more than `cycles` after `earlier`, which is not later. */
static inline _Bool unspin_pause_passed(unspin_u64 earlier, unspin_u64 later, unspin_u64 cycles)
{
	return later - earlier > cycles;
}

/* Intel: whether the spin's first PAUSE begins a loop. */
static inline _Bool unspin_pause_begins(const struct unspin_pause_hardware *hardware,
					const struct unspin_pause_loop *loop, const struct unspin_spin *spin)
{
	return !loop->paused || unspin_pause_passed(loop->last_cycles, spin->first_cycles, hardware->gap_cycles);
}

static inline unspin_u64 unspin_pause_exits_intel(const struct unspin_pause_hardware *hardware,
						  const struct unspin_pause_loop *loop, const struct unspin_spin *spin)
{
	unspin_u64 spun_cycles = 0;

	if (spin->user)
		return UNSPIN_PAUSE_NEVER;
	if (!unspin_pause_begins(hardware, loop, spin)) {
		spun_cycles = spin->first_cycles - loop->first_cycles;
		if (spun_cycles > hardware->window)
			return 0;
	}
	/* Each later one begins a loop of its own, or no time passes between them. */
	if (spin->period_cycles > hardware->gap_cycles || spin->period_cycles == 0)
		return UNSPIN_PAUSE_NEVER;
	return (hardware->window - spun_cycles) / spin->period_cycles + 1;
}

static inline unspin_u64 unspin_pause_exits_amd(const struct unspin_pause_hardware *hardware,
						const struct unspin_pause_loop *loop, const struct unspin_spin *spin)
{
	unspin_u32 left = loop->left;

	if (hardware->gap_cycles != 0 &&
	    unspin_pause_passed(loop->last_cycles, spin->first_cycles, hardware->gap_cycles))
		left = hardware->window;
	/* Each later one loads the count again: only the first can exit, or with a count of 0 the one after it. */
	if (hardware->gap_cycles != 0 && spin->period_cycles > hardware->gap_cycles && left != 0)
		return hardware->window == 0 ? 1 : UNSPIN_PAUSE_NEVER;
	return left;
}

/* Which PAUSE of the spin exits, counted from 0; UNSPIN_PAUSE_NEVER: none, however long it spins. */
static inline unspin_u64 unspin_pause_exits(const struct unspin_pause_hardware *hardware,
					    const struct unspin_pause_loop *loop, const struct unspin_spin *spin)
{
	if (hardware->kind == UNSPIN_PAUSE_INTEL)
		return unspin_pause_exits_intel(hardware, loop, spin);
	if (hardware->kind == UNSPIN_PAUSE_AMD)
		return unspin_pause_exits_amd(hardware, loop, spin);
	return UNSPIN_PAUSE_NEVER;
}

static inline void unspin_pause_spun_intel(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop,
					   const struct unspin_spin *spin, unspin_u64 last_cycles)
{
	if (spin->user)
		return;
	if (unspin_pause_begins(hardware, loop, spin))
		loop->first_cycles = spin->first_cycles;
	if (last_cycles != spin->first_cycles && spin->period_cycles > hardware->gap_cycles)
		loop->first_cycles = last_cycles;
	loop->last_cycles = last_cycles;
	loop->paused = 1;
}

static inline void unspin_pause_spun_amd(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop,
					 const struct unspin_spin *spin, unspin_u64 pauses, unspin_u64 last_cycles)
{
	_Bool loads = hardware->gap_cycles != 0;

	if (loads && unspin_pause_passed(loop->last_cycles, spin->first_cycles, hardware->gap_cycles))
		loop->left = hardware->window;
	if (loads && pauses > 1 && spin->period_cycles > hardware->gap_cycles) {
		loop->left = hardware->window;
		pauses = 1;
	}
	loop->left = loop->left > pauses ? loop->left - (unspin_u32)pauses : 0;
	loop->last_cycles = last_cycles;
}

/*
 * The first `pauses` PAUSEs of the spin were executed and did not exit: at most as many as unspin_pause_exits() returns. The spin
 * ended then, and the guest was not left: the wait was over. The loop continues with what comes next. The last PAUSE was less
 * than 2^64 cycles after the TSC began.
 */
static inline void unspin_pause_spun(const struct unspin_pause_hardware *hardware, struct unspin_pause_loop *loop,
				     const struct unspin_spin *spin, unspin_u64 pauses)
{
	unspin_u64 last_cycles;

	if (pauses == 0)
		return;
	last_cycles = spin->first_cycles + (pauses - 1) * spin->period_cycles;
	if (hardware->kind == UNSPIN_PAUSE_INTEL)
		unspin_pause_spun_intel(hardware, loop, spin, last_cycles);
	else if (hardware->kind == UNSPIN_PAUSE_AMD)
		unspin_pause_spun_amd(hardware, loop, spin, pauses, last_cycles);
}

/*
 * A spin whose loop takes `spin_cycles` for a spin, PAUSE and all, and PAUSEs at every k-th spin (locks/platform/contract.h): the next
 * one after `spins_to_pause` spins from `now_cycles` on. None of them 0.
 */
static inline void unspin_spin_of_count(struct unspin_spin *spin, unspin_u64 now_cycles, unspin_u32 spin_cycles,
					unspin_u32 spins_per_pause, unspin_u32 spins_to_pause)
{
	spin->first_cycles = now_cycles + (unspin_u64)spins_to_pause * spin_cycles;
	spin->period_cycles = (unspin_u64)spins_per_pause * spin_cycles;
}

/* After how many spins of such a spin PAUSE number `pause` comes; UNSPIN_PAUSE_NEVER stays what it is. */
static inline unspin_u64 unspin_spins_until(unspin_u64 pause, unspin_u32 spins_per_pause, unspin_u32 spins_to_pause)
{
	if (pause >= (UNSPIN_PAUSE_NEVER - spins_to_pause) / (spins_per_pause ? spins_per_pause : 1))
		return UNSPIN_PAUSE_NEVER;
	return spins_to_pause + pause * spins_per_pause;
}

#endif
