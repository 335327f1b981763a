/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * waiting_strategy.h - how a queued waiter of a blocking lock waits: asleep, or spinning as long as no other task needs
 * its CPU.
 *
 * Source: Kashyap et al. 2018 (eCS), section 4; ruling 24. SchdSpin: a waiter spins while its vCPU has no other
 * runnable task, and otherwise sleeps in the guest. eSchdSpin: a waiter spins only while, in addition, no other task
 * could run on its pCPU. The pv page may be wrong: then a waiter spins where it should sleep, for at most
 * WAITING_SPINS_MAX rounds, or sleeps where it should spin.
 */
#ifndef UNSPIN_LOCKS_WAITING_STRATEGY_H
#define UNSPIN_LOCKS_WAITING_STRATEGY_H

#include "../platform/contract.h"

enum waiting_strategy {
	WAITING_SLEEP = 0, /* sleeps at once, as in Linux, where only tasks outside the queue spin */
	WAITING_SCHDSPIN = 1,
	WAITING_ESCHDSPIN = 2,
};

/*
 * Spins between two reads of the pv page (as PV_PREV_CHECK_MASK + 1), and the number of such rounds after which it
 * sleeps.
 */
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

/* Waits while the word holds `value`. As platform_sleep(), it may return without cause. */
static inline void waiting_wait(enum waiting_strategy strategy, const struct platform_word *word, unspin_u32 value)
{
	for (unspin_u32 spins = 0; spins < WAITING_SPINS_MAX && waiting_may_spin(strategy); spins++) {
		if (platform_wait_while(word, value, WAITING_POLL_SPINS) != value)
			return;
	}
	platform_sleep(word, value);
}

#endif
