/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * place.h - a waiter's place in a lock that keeps one node for each of PLATFORM_WAITERS_MAX waiters.
 *
 * A waiter's node is that of its number. All waiters with greater numbers share one more node, for which they contend first:
 * so a lock never overruns, and such waiters get in, without the order that the lock promises to the others. Links between nodes
 * are places plus 1, so that 0 is none.
 */
#ifndef UNSPIN_LOCKS_PLACE_H
#define UNSPIN_LOCKS_PLACE_H

#include "../platform/contract.h"

#define PLACE_SHARED PLATFORM_WAITERS_MAX
#define PLACES (PLATFORM_WAITERS_MAX + 1)

/* The place of a waiter or task with that number. */
static inline unspin_u32 place_of(unspin_u32 number)
{
	return number < PLATFORM_WAITERS_MAX ? number : PLACE_SHARED;
}

/* Returns the caller's place, when it is its own. `shared`: the lock's word for this, 0 at first. */
static inline unspin_u32 place_take(struct platform_word *shared, unspin_u32 number)
{
	unspin_u32 place = place_of(number);

	if (place == PLACE_SHARED) {
		while (platform_exchange_acquire(shared, 1) != 0)
			platform_wait_while(shared, 1, PLATFORM_FOREVER);
	}
	return place;
}

/* The same without waiting; whether the place is the caller's. */
static inline _Bool place_try(struct platform_word *shared, unspin_u32 number)
{
	return place_of(number) != PLACE_SHARED || platform_exchange_acquire(shared, 1) == 0;
}

/* The caller needs its node no more. */
static inline void place_leave(struct platform_word *shared, unspin_u32 number)
{
	if (place_of(number) == PLACE_SHARED)
		platform_store_release(shared, 0);
}

#endif
