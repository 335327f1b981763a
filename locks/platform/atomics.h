/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * atomics.h - the shared accesses of the waiting contract (locks/platform/contract.h) by compiler builtins, for worlds
 * whose words are in ordinary cached memory: threads and the micro guest. Their platform headers include it after
 * contract.h has declared the functions. Any context.
 */
#ifndef UNSPIN_LOCKS_PLATFORM_ATOMICS_H
#define UNSPIN_LOCKS_PLATFORM_ATOMICS_H

/* A plain store: the caller publishes the word afterwards by other means (creating a thread, a barrier). */
static inline void platform_init(struct platform_word *word, unspin_u32 value)
{
	word->value = value;
}

/* Relaxed: for a value that is only a hint, or on which a later atomic operation decides. */
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

/* Release: all accesses before it are visible to a thread that reads the value with acquire. */
static inline void platform_store_release(struct platform_word *word, unspin_u32 value)
{
	__atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
}

/* Acquire, which suffices to take a lock: the store publishes nothing, and later accesses must not move before it. */
static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value)
{
	return __atomic_exchange_n(&word->value, value, __ATOMIC_ACQUIRE);
}

/* Relaxed, which suffices to draw a ticket: atomicity makes it unique, and the wait that follows orders the entry. */
static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend)
{
	return __atomic_fetch_add(&word->value, addend, __ATOMIC_RELAXED);
}

/* Release, as platform_store_release(); later additions continue the release sequence. */
static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend)
{
	return __atomic_fetch_add(&word->value, addend, __ATOMIC_RELEASE);
}

/* Strong: never fails spuriously. Acquire on success; relaxed on failure, which has taken nothing. */
static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	__atomic_compare_exchange_n(&word->value, &expected, desired, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	return expected;
}

/* Sequentially consistent: on x86 one instruction with a lock prefix, as all operations that read and write. */
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

/*
 * One instruction of 8 bytes. C has no name for accesses of two sizes to one place; processors order them as they order all
 * accesses to these bytes, and the type tells the compiler that it is an alias of both words.
 */
typedef unspin_u64 __attribute__((may_alias)) platform_two_words;

static inline _Bool platform_compare_exchange_two_ordered(struct platform_word *words, struct platform_values expected,
							  struct platform_values desired)
{
	unspin_u64 before, after;

	__builtin_memcpy(&before, &expected, sizeof(before));
	__builtin_memcpy(&after, &desired, sizeof(after));
	return __atomic_compare_exchange_n((platform_two_words *)(void *)words, &before, after, 0, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static inline void platform_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
