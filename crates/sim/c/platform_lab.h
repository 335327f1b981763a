/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* platform_lab.h - the waiting contract (locks/platform.h) in the lab: every access takes simulated time. */
#ifndef UNSPIN_LAB_PLATFORM_H
#define UNSPIN_LAB_PLATFORM_H

#include "lab.h"

static inline void platform_init(struct platform_word *word, unspin_u32 value)
{
	word->value = value;
}

static inline unspin_u32 platform_load_relaxed(const struct platform_word *word)
{
	return unspin_lab_perform(UNSPIN_LAB_LOAD, word, 0, 0);
}

static inline unspin_u32 platform_load_acquire(const struct platform_word *word)
{
	return unspin_lab_perform(UNSPIN_LAB_LOAD, word, 0, 0);
}

static inline void platform_store_relaxed(struct platform_word *word, unspin_u32 value)
{
	unspin_lab_perform(UNSPIN_LAB_STORE, word, value, 0);
}

static inline void platform_store_release(struct platform_word *word, unspin_u32 value)
{
	unspin_lab_perform(UNSPIN_LAB_STORE, word, value, 0);
}

static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value)
{
	return unspin_lab_perform(UNSPIN_LAB_EXCHANGE, word, value, 0);
}

static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend)
{
	return unspin_lab_perform(UNSPIN_LAB_FETCH_ADD, word, addend, 0);
}

static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend)
{
	return unspin_lab_perform(UNSPIN_LAB_FETCH_ADD, word, addend, 0);
}

static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	return unspin_lab_perform(UNSPIN_LAB_COMPARE_EXCHANGE, word, expected, desired);
}

static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 turns)
{
	return turns ? unspin_lab_perform(UNSPIN_LAB_WAIT_WHILE, word, value, turns) : value;
}

#define PLATFORM_HAS_WAIT_UNTIL
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value)
{
	unspin_lab_perform(UNSPIN_LAB_WAIT_UNTIL, word, value, 0);
}

#endif
