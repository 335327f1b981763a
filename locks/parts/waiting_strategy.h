/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * waiting_strategy.h - how the waiter of a blocking lock waits: asleep, or spinning as long as its CPU has nothing better to do.
 *
 * Source: Kashyap et al. 2018 (eCS), section 4; ruling 24. SchdSpin: a waiter spins while its guest's run queue holds one
 * task, and otherwise sleeps in the guest. eSchdSpin: only while, besides, no other task could run on its pCPU. Both read a
 * pv page that may be wrong: then a waiter spins where it should sleep, for at most WAITING_SPINS_MAX spins, or the reverse.
 */
#ifndef UNSPIN_LOCKS_WAITING_STRATEGY_H
#define UNSPIN_LOCKS_WAITING_STRATEGY_H

#include "../platform/contract.h"

enum waiting_strategy {
	WAITING_SLEEP = 0, /* Linux: spins only while it does not queue, for a holder that runs */
	WAITING_SCHDSPIN = 1,
	WAITING_ESCHDSPIN = 2,
};

/* Spins between two reads (as PV_PREV_CHECK_MASK + 1), and how many reads before it sleeps whatever they return. */
#define WAITING_POLL_SPINS 256u
#ifndef WAITING_SPINS_MAX
#define WAITING_SPINS_MAX (1u << 16)
#endif

static inline _Bool waiting_may_spin(enum waiting_strategy strategy)
{
	if (strategy == WAITING_SLEEP || platform_runnable_tasks() > 1)
		return 0;
	return strategy == WAITING_SCHDSPIN || !platform_is_overloaded();
}

/* Waits while the word holds `value`, as platform_sleep() does: it may return without cause. */
static inline void waiting_wait(enum waiting_strategy strategy, const struct platform_word *word, unspin_u32 value)
{
	for (unspin_u32 spins = 0; spins < WAITING_SPINS_MAX && waiting_may_spin(strategy); spins++) {
		if (platform_wait_while(word, value, WAITING_POLL_SPINS) != value)
			return;
	}
	platform_sleep(word, value);
}

#endif
