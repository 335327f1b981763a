/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* platform_lab.h - the waiting contract (locks/platform/contract.h) in the lab: every access takes simulated time. */
#ifndef UNSPIN_LAB_PLATFORM_H
#define UNSPIN_LAB_PLATFORM_H

#include "lab.h"

#define PLATFORM_WAITERS_MAX UNSPIN_GUEST_VCPUS_MAX
#define PLATFORM_NODE_ALIGNMENT 64

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

static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	return spins ? unspin_lab_perform(UNSPIN_LAB_WAIT_WHILE, word, value, spins) : value;
}

/* A wait for the vCPU's own word of missing answers, which does not change while no answer is missing. */
static inline void platform_pause(unspin_u32 spins)
{
	const struct unspin_lab_task *self = unspin_lab_self();
	const void *own = self->memory + unspin_lab_unanswered_at(self->lock_kind, self->locks, self->number);
	const struct platform_word *word = own;

	platform_wait_while(word, word->value, spins);
}

/* As in the guest. */
static inline void platform_nap(void)
{
	platform_pause(2048);
}

#define PLATFORM_HAS_WAIT_UNTIL
static inline void platform_wait_until(const struct platform_word *word, unspin_u32 value)
{
	unspin_lab_perform(UNSPIN_LAB_WAIT_UNTIL, word, value, PLATFORM_FOREVER);
}

static inline _Bool platform_wait_until_for(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	if (spins == 0)
		return platform_load_acquire(word) == value;
	return unspin_lab_perform(UNSPIN_LAB_WAIT_UNTIL, word, value, spins) == value;
}

static inline unspin_u32 platform_exchange_ordered(struct platform_word *word, unspin_u32 value)
{
	return unspin_lab_perform(UNSPIN_LAB_EXCHANGE, word, value, 0);
}

static inline unspin_u32 platform_fetch_add_ordered(struct platform_word *word, unspin_u32 addend)
{
	return unspin_lab_perform(UNSPIN_LAB_FETCH_ADD, word, addend, 0);
}

static inline unspin_u32 platform_fetch_or_ordered(struct platform_word *word, unspin_u32 bits)
{
	return unspin_lab_perform(UNSPIN_LAB_FETCH_OR, word, bits, 0);
}

static inline unspin_u32 platform_fetch_and_ordered(struct platform_word *word, unspin_u32 bits)
{
	return unspin_lab_perform(UNSPIN_LAB_FETCH_AND, word, bits, 0);
}

static inline unspin_u32 platform_compare_exchange_ordered(struct platform_word *word, unspin_u32 expected,
							   unspin_u32 desired)
{
	return unspin_lab_perform(UNSPIN_LAB_COMPARE_EXCHANGE, word, expected, desired);
}

/*
 * The first access brings the line with both words. No simulated time passes after it, since what follows are accesses to
 * a line that only this pCPU has: three hits are counted in place of one.
 */
static inline _Bool platform_compare_exchange_two_ordered(struct platform_word *words, struct platform_values expected,
							  struct platform_values desired)
{
	if (unspin_lab_perform(UNSPIN_LAB_FETCH_OR, &words[0], 0, 0) != expected.first ||
	    words[1].value != expected.second)
		return 0;
	unspin_lab_perform(UNSPIN_LAB_EXCHANGE, &words[1], desired.second, 0);
	unspin_lab_perform(UNSPIN_LAB_EXCHANGE, &words[0], desired.first, 0);
	return 1;
}

/* Simulated accesses take effect in order, so there is nothing to wait for; the time of a fence is not modelled. */
static inline void platform_fence(void)
{
}

static inline unspin_u32 platform_waiter(void)
{
	return unspin_lab_self()->number;
}

static inline unspin_u32 platform_task(void)
{
	return unspin_lab_self()->task;
}

/*
 * HLT, unless the word has changed or the vCPU has been kicked. No simulated time passes between this test and the HLT,
 * as in a guest that tests with interrupts off.
 */
static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	if (unspin_lab_perform(UNSPIN_LAB_TAKE_KICK, 0, 0, 0) || platform_load_acquire(word) != value)
		return;
	unspin_lab_perform(UNSPIN_LAB_HALT, 0, 0, 0);
	unspin_lab_perform(UNSPIN_LAB_TAKE_KICK, 0, 0, 0);
}

static inline void platform_kick(unspin_u32 waiter)
{
	unspin_lab_perform(UNSPIN_LAB_KICK, 0, waiter, 0);
}

/*
 * Every interrupt makes all tasks of a vCPU read their words again, so wake-ups are not stored: the word has changed
 * before.
 */
static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	if (platform_load_acquire(word) == value)
		unspin_lab_perform(UNSPIN_LAB_HALT, 0, 0, 0);
}

static inline void platform_wake(unspin_u32 task)
{
	unspin_lab_perform(UNSPIN_LAB_WAKE, 0, task % unspin_lab_self()->vcpus, 0);
}

static inline void platform_help(void)
{
	unspin_lab_perform(UNSPIN_LAB_HELP, 0, 0, 0);
}

static inline void platform_help_named(unspin_u32 waiter)
{
	unspin_lab_perform(UNSPIN_LAB_HELP_NAMED, 0, waiter, 0);
}

static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	return unspin_lab_perform(UNSPIN_LAB_PREEMPTED, 0, waiter, 0) != 0;
}

static inline _Bool platform_is_overloaded(void)
{
	return unspin_lab_perform(UNSPIN_LAB_OVERLOADED, 0, 0, 0) != 0;
}

static inline unspin_u32 platform_spin_count(unspin_u32 own)
{
	return unspin_lab_perform(UNSPIN_LAB_SPIN_COUNT, 0, own, 0);
}

static inline unspin_u32 platform_runnable_tasks(void)
{
	return unspin_lab_perform(UNSPIN_LAB_RUNNABLE, 0, 0, 0);
}

/* Answers for the task's vCPU only, not for which of its tasks runs. */
#define PLATFORM_HAS_TASK_RUNS
static inline _Bool platform_task_runs(unspin_u32 task)
{
	return !platform_is_preempted(task % unspin_lab_self()->vcpus);
}

#endif
