/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * atomics.h - the shared accesses of the waiting contract (locks/platform/contract.h) by the compiler's builtins: for
 * worlds whose words lie in ordinary cached memory, threads and the micro guest alike. Included by their platform
 * headers after locks/platform/contract.h has declared the contract; any context may call these.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_ATOMICS_H
#define UNSPIN_LOCKS_PLATFORM_ATOMICS_H

/* Plain: the caller publishes the word afterwards by other means (creating a thread, a barrier). */
static inline void platform_init(struct platform_word *word, unspin_u32 value)
{
	word->value = value;
}

/* Relaxed: the value is a pv page, or an atomic operation that follows decides. */
static inline unspin_u32 platform_load_relaxed(const struct platform_word *word)
{
	return __atomic_load_n(&word->value, __ATOMIC_RELAXED);
}

/* Acquire: what the thread that stored the value wrote before its release is visible after this. */
static inline unspin_u32 platform_load_acquire(const struct platform_word *word)
{
	return __atomic_load_n(&word->value, __ATOMIC_ACQUIRE);
}

/* Relaxed: nothing is published with the value. */
static inline void platform_store_relaxed(struct platform_word *word, unspin_u32 value)
{
	__atomic_store_n(&word->value, value, __ATOMIC_RELAXED);
}

/* Release: the critical section before it is visible to a thread that reads the value with acquire. */
static inline void platform_store_release(struct platform_word *word, unspin_u32 value)
{
	__atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
}

/* Acquire suffices to take a lock: its store part publishes nothing, later accesses must not move before it. */
static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value)
{
	return __atomic_exchange_n(&word->value, value, __ATOMIC_ACQUIRE);
}

/* Relaxed suffices to draw a ticket: it is unique by atomicity; entering is ordered by the wait that follows. */
static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend)
{
	return __atomic_fetch_add(&word->value, addend, __ATOMIC_RELAXED);
}

/* Release: as a store that releases; a chain of such additions stays one release sequence. */
static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend)
{
	return __atomic_fetch_add(&word->value, addend, __ATOMIC_RELEASE);
}

/* Strong, so never a spurious failure. Acquire where it takes something; a failure has taken nothing: relaxed. */
static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	__atomic_compare_exchange_n(&word->value, &expected, desired, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	return expected;
}

/* Sequentially consistent: one instruction with a lock prefix on x86, as the others that read and write. */
static inline unspin_u32 platform_exchange_ordered(struct platform_word *word, unspin_u32 value)
{
	return __atomic_exchange_n(&word->value, value, __ATOMIC_SEQ_CST);
}

static inline unspin_u32 platform_fetch_add_ordered(struct platform_word *word, unspin_u32 addend)
{
	return __atomic_fetch_add(&word->value, addend, __ATOMIC_SEQ_CST);
}

static inline unspin_u32 platform_fetch_or_ordered(struct platform_word *word, unspin_u32 bits)
{
	return __atomic_fetch_or(&word->value, bits, __ATOMIC_SEQ_CST);
}

static inline unspin_u32 platform_fetch_and_ordered(struct platform_word *word, unspin_u32 bits)
{
	return __atomic_fetch_and(&word->value, bits, __ATOMIC_SEQ_CST);
}

static inline unspin_u32 platform_compare_exchange_ordered(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	__atomic_compare_exchange_n(&word->value, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	return expected;
}

static inline void platform_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
