/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * sleepers.h - which waiters have parked at a lock: one bit for each of PLATFORM_WAITERS_MAX waiters.
 *
 * Why no kick is lost: a sleeper sets its bit (a full barrier) and then reads the word that it waits for, in
 * platform_park(). The waker changes that word by an ordered operation and then reads the bits. So at least one of the
 * two sees the other. If the waker has cleared a bit, its kick follows and ends the park, whether it comes before or
 * during it.
 */
#ifndef UNSPIN_LOCKS_SLEEPERS_H
#define UNSPIN_LOCKS_SLEEPERS_H

#include "../platform/contract.h"

#define SLEEPERS_WORDS ((PLATFORM_WAITERS_MAX + 31) / 32)

struct sleepers {
	struct platform_word bits[SLEEPERS_WORDS];
};

static inline void sleepers_init(struct sleepers *sleepers)
{
	for (unspin_u32 i = 0; i < SLEEPERS_WORDS; i++)
		platform_init(&sleepers->bits[i], 0);
}

/* Whether the waiter of this number has a bit; a waiter without one must not park. */
static inline _Bool sleepers_knows(unspin_u32 waiter)
{
	return waiter < PLATFORM_WAITERS_MAX;
}

/* The caller is about to park. `waiter` is its number, for which sleepers_knows() is true. */
static inline void sleepers_enter(struct sleepers *sleepers, unspin_u32 waiter)
{
	platform_fetch_or_ordered(&sleepers->bits[waiter / 32], 1u << waiter % 32);
}

/* The caller is awake. Its bit may have been cleared already. */
static inline void sleepers_leave(struct sleepers *sleepers, unspin_u32 waiter)
{
	platform_fetch_and_ordered(&sleepers->bits[waiter / 32], ~(1u << waiter % 32));
}

/* Kicks all parked waiters, after an ordered change of the word that they wait for. */
static inline void sleepers_kick_all(struct sleepers *sleepers)
{
	for (unspin_u32 i = 0; i < SLEEPERS_WORDS; i++) {
		unspin_u32 bits = platform_load_relaxed(&sleepers->bits[i]);

		if (bits)
			bits = platform_exchange_ordered(&sleepers->bits[i], 0);
		for (; bits; bits &= bits - 1)
			platform_kick(32 * i + (unspin_u32)__builtin_ctz(bits));
	}
}

#endif
