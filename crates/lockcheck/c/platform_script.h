/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * platform_script.h - the waiting contract (locks/platform/contract.h) in a scripted world: each call passes a request
 * to script_perform(), which returns after the script has let this thread make that step. So the script chooses every
 * interleaving, time-out, delayed store and answer of the host. The script's side is script.h.
 *
 * The memory model is at most as weak as x86's: a relaxed load is an acquire load, a relaxed store a release store, a
 * read-modify-write a fence. Weaker memory orders are checked by ThreadSanitizer between threads.
 */
#ifndef UNSPIN_BENCH_PLATFORM_SCRIPT_H
#define UNSPIN_BENCH_PLATFORM_SCRIPT_H

enum script_kind {
	SCRIPT_LOAD = 1,
	SCRIPT_STORE = 2,	     /* first: value */
	SCRIPT_EXCHANGE = 3,	     /* first: value */
	SCRIPT_FETCH_ADD = 4,	     /* first: addend */
	SCRIPT_COMPARE_EXCHANGE = 5, /* first: expected, second: desired */
	SCRIPT_WAIT = 6,	     /* first: value, second: spins left */
	SCRIPT_FETCH_OR = 12,	     /* first: bits */
	SCRIPT_FETCH_AND = 13,	     /* first: bits */
	SCRIPT_FENCE = 14,
	SCRIPT_PARK = 15, /* first: value, second: enum script_who; reads the word, and sleeps if it holds the value */
	SCRIPT_PARKED = 16,    /* the same, while it sleeps */
	SCRIPT_KICK = 17,      /* first: thread, second: enum script_who */
	SCRIPT_RUN_STATE = 18, /* a query of the host's state; the answer is 0 or 1 */
	SCRIPT_HELP = 19,      /* first: waiter + 1, or 0 */
	SCRIPT_UNBLOCK =
		23, /* ends the park of a SCRIPT_BLOCKER at this word; first: of the one with the greatest number */
	SCRIPT_COMPARE_EXCHANGE_TWO = 24, /* this word and the next one: `expected`, `desired` */
	/* Requests of the program around the lock, not of the lock. */
	SCRIPT_ENTER = 7, /* first: enum script_entry */
	SCRIPT_LEAVE = 8, /* first: enum script_entry */
	SCRIPT_TRY_REFUSED = 9,
	SCRIPT_IS_LOCKED = 10, /* first: the answer */
	SCRIPT_DONE = 11,      /* the program has ended */
	SCRIPT_ASK = 20,       /* first: enum script_entry; the next access is the lock's */
	SCRIPT_WRONG = 21,     /* first: what was read inside, second: what should have been */
	SCRIPT_ASTRAY =
		22, /* the lock has accessed a word that is not its own, or kicked a waiter that does not exist */
};

/* What a request parks or kicks. Both are the same threads, but a kick does not end a sleep, nor a wake-up a park. */
enum script_who {
	SCRIPT_WAITER = 1,
	SCRIPT_TASK = 2,
	SCRIPT_BLOCKER = 4,  /* by the address of its word; nothing is stored for one that is not parked yet */
	SCRIPT_DEADLINE = 8, /* with SCRIPT_BLOCKER: the park may time out */
};

/* `first` of SCRIPT_UNBLOCK: all of them. */
#define SCRIPT_ALL 2u

/* How a thread entered the critical section. */
enum script_entry { SCRIPT_BY_TRY = 0, SCRIPT_BY_LOCK = 1, SCRIPT_BY_READ = 2 };

/* `place` of a request that names no word; of the first word of the program around the lock. */
#define SCRIPT_NOWHERE 0xffffffffu
#define SCRIPT_OUTSIDE 0x10000u

/* The next step of a thread. */
struct script_request {
	unspin_u32 kind; /* enum script_kind */
	unspin_u32 first;
	unspin_u32 second;
	unspin_u32 place; /* number of the word in the lock, SCRIPT_OUTSIDE and up outside, or SCRIPT_NOWHERE */
	struct platform_values expected, desired; /* of SCRIPT_COMPARE_EXCHANGE_TWO; else 0 */
};
UNSPIN_ASSERT_SIZE(struct script_request, 32);

/* Called on a scripted thread only. Returns what the access returns; 0 where it returns nothing. `word` may be 0. */
static unspin_u32 script_perform(unspin_u32 kind, const struct platform_word *word, unspin_u32 first,
				 unspin_u32 second);
/* The same for a request of which all but the place is filled in. */
static unspin_u32 script_issue(struct script_request request, const struct platform_word *word);

/*
 * As many threads as are ever explored at a lock with nodes. Nodes are not aligned to cache lines, since every byte of
 * a lock is part of a state.
 */
#ifndef PLATFORM_WAITERS_MAX
#define PLATFORM_WAITERS_MAX 4u
#endif
#define PLATFORM_NODE_ALIGNMENT 4

/* One round of reads before a halt: further rounds would differ in their count only. */
#define PARAVIRTUAL_QSPINLOCK_HALT_SPINS 256u
#define MUTEX_SPINS_MAX 1u
#define MUTEX_VAIN_WAKES 1u
#define RWSEM_SPINS_MAX 1u
#define WAITING_SPINS_MAX 1u
/* Each limit is reached within a run of two acquisitions. */
#define ADAPTIVE_MUTEX_TURNS_MAX 1u
#define ADAPTIVE_MUTEX_BRIEF_SPINS 0u
#define ADAPTIVE_MUTEX_KEEP_SPINS 1u
#define ADAPTIVE_MUTEX_LONG_SPINS 1u
#define ADAPTIVE_MUTEX_NAP_SPINS 1u
#define ADAPTIVE_MUTEX_HASTE_MAX 0u
#define ADAPTIVE_MUTEX_HASTE_TRIES 0u
#define ADAPTIVE_MUTEX_VAIN_WAKES 2u
#define ADAPTIVE_MUTEX_PAUSE_MAX 1u
#define ADAPTIVE_MUTEX_PAUSE_HELD 0u
#define ADAPTIVE_MUTEX_SEEN_MAX 1u
#define ADAPTIVE_RWLOCK_SPINS 1u

/* The number of the running thread. */
static unspin_u32 script_thread(void);

static inline void platform_init(struct platform_word *word, unspin_u32 value)
{
	word->value = value;
}

static inline unspin_u32 platform_load_relaxed(const struct platform_word *word)
{
	return script_perform(SCRIPT_LOAD, word, 0, 0);
}

static inline unspin_u32 platform_load_acquire(const struct platform_word *word)
{
	return script_perform(SCRIPT_LOAD, word, 0, 0);
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

static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	return script_perform(SCRIPT_WAIT, word, value, spins);
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

static inline _Bool platform_compare_exchange_two_ordered(struct platform_word *words, struct platform_values expected,
							  struct platform_values desired)
{
	struct script_request request = {.kind = SCRIPT_COMPARE_EXCHANGE_TWO, .expected = expected, .desired = desired};

	return script_issue(request, words) != 0;
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

static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	script_perform(SCRIPT_PARK, word, value, SCRIPT_WAITER);
}

static inline void platform_kick(unspin_u32 waiter)
{
	script_perform(SCRIPT_KICK, 0, waiter, SCRIPT_WAITER);
}

static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	script_perform(SCRIPT_PARK, word, value, SCRIPT_TASK);
}

static inline void platform_wake(unspin_u32 task)
{
	script_perform(SCRIPT_KICK, 0, task, SCRIPT_TASK);
}

/* Time passes between any two steps. */
static inline void platform_pause(unspin_u32 spins)
{
	(void)spins;
}

static inline void platform_nap(void)
{
}

#define PLATFORM_HAS_BLOCK
static inline _Bool platform_block(const struct platform_word *word, unspin_u32 value, const void *deadline)
{
	return script_perform(SCRIPT_PARK, word, value, deadline ? SCRIPT_BLOCKER | SCRIPT_DEADLINE : SCRIPT_BLOCKER) !=
	       0;
}

static inline void platform_unblock(const struct platform_word *word)
{
	/* The choice of whom to wake is made before the request: an answer is given at once. */
	unspin_u32 chosen = script_perform(SCRIPT_RUN_STATE, 0, 0, 0);

	script_perform(SCRIPT_UNBLOCK, word, chosen, 0);
}

static inline void platform_unblock_all(const struct platform_word *word)
{
	script_perform(SCRIPT_UNBLOCK, word, SCRIPT_ALL, 0);
}

static inline void platform_help(void)
{
	script_perform(SCRIPT_HELP, 0, 0, 0);
}

static inline void platform_help_named(unspin_u32 waiter)
{
	script_perform(SCRIPT_HELP, 0, waiter + 1, 0);
}

static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	(void)waiter;
	return script_perform(SCRIPT_RUN_STATE, 0, 0, 0) != 0;
}

static inline _Bool platform_is_overloaded(void)
{
	return script_perform(SCRIPT_RUN_STATE, 0, 0, 0) != 0;
}

/* In this world a bounded wait may end at any step, so all thresholds are covered. */
static inline unspin_u32 platform_spin_count(unspin_u32 own)
{
	return own;
}

static inline unspin_u32 platform_runnable_tasks(void)
{
	return 1 + script_perform(SCRIPT_RUN_STATE, 0, 0, 0);
}

/* A time-out is the script's choice at each wait, so spins are not counted from one wait to the next. */
#define PLATFORM_HAS_WAIT_UNTIL
static inline _Bool platform_wait_until_for(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	unspin_u32 seen = platform_load_acquire(word);

	while (seen != value) {
		unspin_u32 next = platform_wait_while(word, seen, spins);

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
