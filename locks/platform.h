/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * platform.h - the waiting contract: all that a lock may ask of the world it runs in.
 *
 * A lock header includes this file and nothing else. Each world gives the functions below as static inline:
 * platform_threads.h (threads of a process) and guest/platform_guest.h (the micro guest); it is chosen by defining
 * UNSPIN_PLATFORM_HEADER before a lock is included. A checker and the lab follow the same contract.
 *
 * There is no bare relax loop: waiting is platform_wait_while(). Every shared access is one of the calls below, with
 * its memory order in its name, so that a checker can make it a scheduling point and the lab can give it a cost.
 * All may be called from any context of that world, with or without locks held. None fails or allocates.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_H
#define UNSPIN_LOCKS_PLATFORM_H

#include "../abi/types.h"

/* A word that several vCPUs share. Only platform calls touch `value`. */
struct platform_word {
	unspin_u32 value;
};

/* Plain initialisation, before anybody else can see the word. */
static inline void platform_init(struct platform_word *word, unspin_u32 value);

static inline unspin_u32 platform_load_relaxed(const struct platform_word *word);
static inline unspin_u32 platform_load_acquire(const struct platform_word *word);
static inline void platform_store_relaxed(struct platform_word *word, unspin_u32 value);
static inline void platform_store_release(struct platform_word *word, unspin_u32 value);

/* Each returns the value that was there before. */
static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value);
static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend);
static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend);
/* Acquire when it succeeds (returns `expected`), relaxed when it fails. Never fails spuriously. */
static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired);

/*
 * Waits while the word holds `value`, for at most `turns` turns of the loop (PLATFORM_FOREVER: no bound), and returns
 * the value seen last: `value` itself means that the turns are spent. An acquire load sees the change. One turn is one
 * look at the word and, at every k-th turn of the world's choice, one PAUSE after a look that saw no change. A turn
 * counts before its look, so a lock that calls this has waited for at least one turn; with 0 turns nothing is looked
 * at and `value` comes back. The k goes on from call to call, since a lock may ask for one turn at a time.
 */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 turns);
#define PLATFORM_FOREVER 0xffffffffu

/*
 * Waits until the word holds `value`, however long. The acquire load that sees it there orders what follows. The same as the
 * loop below, which is what a world that knows no better does; the lab need not wake a waiter for each other value.
 */
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value);

#ifndef UNSPIN_PLATFORM_HEADER
#error "define UNSPIN_PLATFORM_HEADER: which world these locks run in"
#endif
#include UNSPIN_PLATFORM_HEADER

#ifndef PLATFORM_HAS_WAIT_UNTIL
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value)
{
	unspin_u32 seen = platform_load_acquire(word);

	while (seen != value)
		seen = platform_wait_while(word, seen, PLATFORM_FOREVER);
}
#endif

#endif
