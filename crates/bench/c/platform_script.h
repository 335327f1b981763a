/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * platform_script.h - the waiting contract (locks/platform.h) in a scripted world: no access happens until the script
 * says so. Each call hands its request to script_perform(), which returns when the script has stepped this thread.
 * So every interleaving, time-out and change can be had exactly; script.h is the script's side.
 *
 * The world is sequentially consistent: it says nothing about memory orders. Threads under ThreadSanitizer do.
 */
#ifndef UNSPIN_BENCH_PLATFORM_SCRIPT_H
#define UNSPIN_BENCH_PLATFORM_SCRIPT_H

enum script_kind {
	SCRIPT_LOAD = 1,
	SCRIPT_STORE = 2,	     /* first: value */
	SCRIPT_EXCHANGE = 3,	     /* first: value */
	SCRIPT_FETCH_ADD = 4,	     /* first: addend */
	SCRIPT_COMPARE_EXCHANGE = 5, /* first: expected, second: desired */
	SCRIPT_WAIT = 6,	     /* first: value, second: turns left */
	SCRIPT_FETCH_OR = 12,	     /* first: bits */
	SCRIPT_FETCH_AND = 13,	     /* first: bits */
	SCRIPT_FENCE = 14,	     /* word is 0 */
	SCRIPT_PARK = 15,	     /* first: value; waits for a kick */
	SCRIPT_KICK = 16,	     /* first: waiter */
	/* Of the program around the lock, not of the lock; word is 0. */
	SCRIPT_ENTER = 7, /* first: 1 by lock(), 0 by trylock() */
	SCRIPT_LEAVE = 8,
	SCRIPT_TRY_REFUSED = 9,
	SCRIPT_IS_LOCKED = 10, /* first: the answer */
	SCRIPT_DONE = 11,      /* the program has ended */
};

/* What a thread wants to do next. */
struct script_request {
	unspin_u32 kind; /* enum script_kind */
	unspin_u32 first;
	unspin_u32 second;
	unspin_u32 reserved;
	struct platform_word *word;
};
UNSPIN_ASSERT_SIZE(struct script_request, 24);

/* Called on a scripted thread only. Returns what the access returns; 0 where it returns nothing. */
unspin_u32 script_perform(unspin_u32 kind, struct platform_word *word, unspin_u32 first, unspin_u32 second);

/* As many as SCRIPT_THREADS_MAX; their nodes lie close together, since every word of a lock is part of a state. */
#define PLATFORM_WAITERS_MAX 8u
#define PLATFORM_NODE_ALIGNMENT 4

/* One round of looks before a halt: the others would differ in their count only. */
#define PARAVIRTUAL_QSPINLOCK_HALT_TURNS 256u
#define MUTEX_SPINS_MAX 1u
#define RWSEM_SPINS_MAX 1u
#define WAITING_SPINS_MAX 1u

/* The thread that runs now. */
unspin_u32 script_thread(void);

static inline void platform_init(struct platform_word *word, unspin_u32 value)
{
	word->value = value;
}

static inline unspin_u32 platform_load_relaxed(const struct platform_word *word)
{
	return script_perform(SCRIPT_LOAD, (struct platform_word *)word, 0, 0);
}

static inline unspin_u32 platform_load_acquire(const struct platform_word *word)
{
	return script_perform(SCRIPT_LOAD, (struct platform_word *)word, 0, 0);
}

static inline void platform_store_relaxed(struct platform_word *word, unspin_u32 value)
{
	script_perform(SCRIPT_STORE, word, value, 0);
}

static inline void platform_store_release(struct platform_word *word, unspin_u32 value)
{
	script_perform(SCRIPT_STORE, word, value, 0);
}

static inline unspin_u32 platform_exchange_acquire(struct platform_word *word, unspin_u32 value)
{
	return script_perform(SCRIPT_EXCHANGE, word, value, 0);
}

static inline unspin_u32 platform_fetch_add_relaxed(struct platform_word *word, unspin_u32 addend)
{
	return script_perform(SCRIPT_FETCH_ADD, word, addend, 0);
}

static inline unspin_u32 platform_fetch_add_release(struct platform_word *word, unspin_u32 addend)
{
	return script_perform(SCRIPT_FETCH_ADD, word, addend, 0);
}

static inline unspin_u32 platform_compare_exchange_acquire(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	return script_perform(SCRIPT_COMPARE_EXCHANGE, word, expected, desired);
}

static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 turns)
{
	return script_perform(SCRIPT_WAIT, (struct platform_word *)word, value, turns);
}

static inline unspin_u32 platform_exchange_ordered(struct platform_word *word, unspin_u32 value)
{
	return script_perform(SCRIPT_EXCHANGE, word, value, 0);
}

static inline unspin_u32 platform_fetch_add_ordered(struct platform_word *word, unspin_u32 addend)
{
	return script_perform(SCRIPT_FETCH_ADD, word, addend, 0);
}

static inline unspin_u32 platform_fetch_or_ordered(struct platform_word *word, unspin_u32 bits)
{
	return script_perform(SCRIPT_FETCH_OR, word, bits, 0);
}

static inline unspin_u32 platform_fetch_and_ordered(struct platform_word *word, unspin_u32 bits)
{
	return script_perform(SCRIPT_FETCH_AND, word, bits, 0);
}

static inline unspin_u32 platform_compare_exchange_ordered(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	return script_perform(SCRIPT_COMPARE_EXCHANGE, word, expected, desired);
}

static inline void platform_fence(void)
{
	script_perform(SCRIPT_FENCE, 0, 0, 0);
}

static inline unspin_u32 platform_waiter(void)
{
	return script_thread();
}

static inline unspin_u32 platform_task(void)
{
	return script_thread();
}

/* A scripted thread does not park yet: it goes on spinning, which the contract allows. */
static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	(void)word;
	(void)value;
}

static inline void platform_kick(unspin_u32 waiter)
{
	(void)waiter;
}

static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	platform_park(word, value);
}

static inline void platform_wake(unspin_u32 task)
{
	platform_kick(task);
}

static inline void platform_help(void)
{
}

static inline void platform_help_named(unspin_u32 waiter)
{
	(void)waiter;
}

static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	(void)waiter;
	return 0;
}

static inline _Bool platform_is_overloaded(void)
{
	return 0;
}

static inline unspin_u32 platform_runnable_tasks(void)
{
	return 1;
}

/* Here a time-out is the script's choice, at any wait: no turns need be counted from one to the next. */
#define PLATFORM_HAS_WAIT_UNTIL
static inline _Bool platform_wait_until_for(const struct platform_word *word, unspin_u32 value, unspin_u32 turns)
{
	unspin_u32 seen = platform_load_acquire(word);

	while (seen != value) {
		unspin_u32 next = platform_wait_while(word, seen, turns);

		if (next == seen)
			return 0;
		seen = next;
	}
	return 1;
}

static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value)
{
	platform_wait_until_for(word, value, PLATFORM_FOREVER);
}

#endif
