/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * platform_guest.h - the waiting contract (locks/platform/contract.h) in the micro guest.
 *
 * Words are in ordinary write-back memory that all vCPUs of the VM share: x86's memory order gives acquire and release
 * without barriers, and the builtins keep the compiler from reordering. Valid after boot has loaded GS.
 */
#ifndef UNSPIN_GUEST_PLATFORM_GUEST_H
#define UNSPIN_GUEST_PLATFORM_GUEST_H

#include "../locks/platform/atomics.h"
#include "vcpu.h"

#define PLATFORM_WAITERS_MAX UNSPIN_GUEST_VCPUS_MAX
#define PLATFORM_NODE_ALIGNMENT 64

/* ground_truth.c: the current wait has reached notice_at_spins: it is a stall now, or asks for help. */
void wait_noticed(struct vcpu *self);

/* park.c and task.c: the contract's calls. */
void vcpu_park(const struct platform_word *word, unspin_u32 value);
void vcpu_kick(unspin_u32 waiter);
void vcpu_asks_for_help(struct vcpu *self);
void vcpu_asks_for(unspin_u32 waiter);
_Bool vcpu_is_preempted(unspin_u32 waiter);
unspin_u32 task_number(const struct vcpu *self);
void task_sleep(const struct platform_word *word, unspin_u32 value);
void task_wake(unspin_u32 task);

/* The counters are written to memory at every spin, because the VMM reads them during a wait. */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	struct vcpu *self = this_vcpu();
	struct unspin_guest_statistics *statistics = self->statistics;
	unspin_u32 seen = value;

	while (spins) {
		if (spins != PLATFORM_FOREVER)
			spins--;
		count_one(&statistics->spin_count);
		if (statistics->spin_count == self->iteration.notice_at_spins)
			wait_noticed(self);
		seen = platform_load_acquire(word);
		if (seen != value)
			break;
		if (--self->spins_until_pause == 0) {
			self->spins_until_pause = PARAMETERS->pause_every_spins;
			count_one(&statistics->pauses);
			__asm__ volatile("pause" : : : "memory");
		}
	}
	return seen;
}

/* Counted as spins. */
static inline void platform_pause(unspin_u32 spins)
{
	struct vcpu *self = this_vcpu();
	struct unspin_guest_statistics *statistics = self->statistics;

	while (spins--) {
		count_one(&statistics->spin_count);
		if (statistics->spin_count == self->iteration.notice_at_spins)
			wait_noticed(self);
		count_one(&statistics->pauses);
		__asm__ volatile("pause" : : : "memory");
	}
}

/* A vCPU has no clock to wait for: as many spins as in locks/blocking/adaptive_mutex.h. */
static inline void platform_nap(void)
{
	platform_pause(2048);
}

static inline unspin_u32 platform_waiter(void)
{
	return this_vcpu()->number;
}

/* With one task on each vCPU this is the vCPU's number. */
static inline unspin_u32 platform_task(void)
{
	return task_number(this_vcpu());
}

static inline void platform_park(const struct platform_word *word, unspin_u32 value)
{
	vcpu_park(word, value);
}

static inline void platform_kick(unspin_u32 waiter)
{
	vcpu_kick(waiter);
}

static inline void platform_sleep(const struct platform_word *word, unspin_u32 value)
{
	task_sleep(word, value);
}

static inline void platform_wake(unspin_u32 task)
{
	task_wake(task);
}

static inline void platform_help(void)
{
	vcpu_asks_for_help(this_vcpu());
}

static inline void platform_help_named(unspin_u32 waiter)
{
	vcpu_asks_for(waiter);
}

static inline _Bool platform_is_preempted(unspin_u32 waiter)
{
	return vcpu_is_preempted(waiter);
}

static inline _Bool platform_is_overloaded(void)
{
	return *(const volatile unspin_u32 *)&pv_page_of(this_vcpu()->number)->pcpu_overloaded != 0;
}

/* One read: the host may write the word whenever this vCPU is outside the guest. */
static inline unspin_u32 platform_spin_count(unspin_u32 own)
{
	unspin_u32 published = *(const volatile unspin_u32 *)&pv_page_of(this_vcpu()->number)->spin_count;

	return published ? published : own;
}

static inline unspin_u32 platform_runnable_tasks(void)
{
	return (unspin_u32)__builtin_popcount(__atomic_load_n(&this_vcpu()->runnable, __ATOMIC_RELAXED) | 1);
}

#endif
