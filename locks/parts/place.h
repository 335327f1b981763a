/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * place.h - a waiter's place (index of its node) in a lock that has one node for each of PLATFORM_WAITERS_MAX waiters.
 *
 * A waiter's place is its number. All waiters with greater numbers share one more node, for which they contend first:
 * so a lock never runs out of nodes, and these waiters get the lock too, without the order that it promises to the
 * others. Links between nodes are places plus 1, so that 0 means none.
 */
#ifndef UNSPIN_LOCKS_PLACE_H
#define UNSPIN_LOCKS_PLACE_H

#include "../platform/contract.h"

#define PLACE_SHARED PLATFORM_WAITERS_MAX
#define PLACES (PLATFORM_WAITERS_MAX + 1)

/* The place of the waiter or task with this number. */
static inline unspin_u32 place_of(unspin_u32 number)
{
	return number < PLATFORM_WAITERS_MAX ? number : PLACE_SHARED;
}

/*
 * Returns the caller's place, after waiting for it if it is the shared one. `shared`: a word of the lock, 0 at first.
 */
static inline unspin_u32 place_take(struct platform_word *shared, unspin_u32 number)
{
	unspin_u32 place = place_of(number);

	if (place == PLACE_SHARED) {
		while (platform_exchange_acquire(shared, 1) != 0)
			platform_wait_while(shared, 1, PLATFORM_FOREVER);
	}
	return place;
}

/* The same without waiting. Returns whether the caller has its place. */
static inline _Bool place_try(struct platform_word *shared, unspin_u32 number)
{
	return place_of(number) != PLACE_SHARED || platform_exchange_acquire(shared, 1) == 0;
}

/* The caller no longer needs its node. */
static inline void place_leave(struct platform_word *shared, unspin_u32 number)
{
	if (place_of(number) == PLACE_SHARED)
		platform_store_release(shared, 0);
}

#endif
