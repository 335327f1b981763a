/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * waiter_count.h - how many waiters sleep at a lock, or are about to, in this process: in a word with the generation of the
 * process (platform_generation()). The count of another generation is that of threads that are not in this process: 0.
 *
 * Limit: 2^24 - 1 waiters.
 */
#ifndef UNSPIN_LOCKS_WAITER_COUNT_H
#define UNSPIN_LOCKS_WAITER_COUNT_H

#include "../platform/contract.h"

#define WAITER_COUNT_MAX 0xffffffu
#define WAITER_COUNT_GENERATION_SHIFT 24

/* The count in a word's value. */
static inline unspin_u32 waiter_count_of(unspin_u32 value)
{
	_Bool here = value >> WAITER_COUNT_GENERATION_SHIFT == (platform_generation() & 0xff);

	return here ? value & WAITER_COUNT_MAX : 0;
}

/* Relaxed: after an ordered operation of the caller, see sleepers.h. */
static inline unspin_u32 waiter_count_load(const struct platform_word *word)
{
	return waiter_count_of(platform_load_relaxed(word));
}

/* One more (1), or one less (-1u), by an ordered operation. */
static inline void waiter_count_change(struct platform_word *word, unspin_u32 more)
{
	unspin_u32 value = platform_load_relaxed(word), seen, generation;

	for (;; value = seen) {
		generation = platform_generation() << WAITER_COUNT_GENERATION_SHIFT;
		seen = platform_compare_exchange_ordered(word, value, (waiter_count_of(value) + more) | generation);
		if (seen == value)
			return;
	}
}

#endif
