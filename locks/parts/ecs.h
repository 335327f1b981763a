/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ecs.h - publishes a guest's or program's critical sections in its pv page: eCS's six calls, and the counter that the
 * loan uses.
 *
 * Source: Kashyap, Min and Kim, "Scaling Guest OS Critical Sections with eCS" (ATC 2018), Table 1 and section 3.2;
 * ruling 21 (names end in _ecs), ruling 23 (one counter for each class beside the paper's two sums). Ours: `critical`,
 * raised before a lock is asked for and lowered after unlock, and the give-back of a borrowed CPU
 * (abi/guest/pv_page.h).
 *
 * A pv page is written by its own vCPU or thread only, and the host reads it on that thread, so program order is
 * enough. The counters are changed by plain additions, volatile so that the compiler does not move them; an interrupt
 * handler between load and store restores the counters before it returns. With a null page nothing is published. Any
 * context; nothing fails.
 */
#ifndef UNSPIN_LOCKS_ECS_H
#define UNSPIN_LOCKS_ECS_H

#include "../../abi/guest/pv_page.h"

static inline void ecs_add(unspin_u32 *counter, unspin_u32 addend)
{
	*(volatile unspin_u32 *)counter += addend;
}

/* Spinlocks, reader-writer spinlocks, RCU and interrupts: sections in which the guest switches no task. */
static inline void activate_non_preemptable_ecs(struct unspin_pv_page *pv_page)
{
	ecs_add(&pv_page->non_preemptable_ecs_count, 1);
}

static inline void deactivate_non_preemptable_ecs(struct unspin_pv_page *pv_page)
{
	ecs_add(&pv_page->non_preemptable_ecs_count, -1u);
}

/* Mutexes and semaphores: sections of a task, which are saved with it when it is switched out (ecs_save()). */
static inline void activate_preemptable_ecs(struct unspin_pv_page *pv_page)
{
	ecs_add(&pv_page->preemptable_ecs_count, 1);
}

static inline void deactivate_preemptable_ecs(struct unspin_pv_page *pv_page)
{
	ecs_add(&pv_page->preemptable_ecs_count, -1u);
}

/* Whether the host has published that the vCPU with this page is descheduled. May be out of date. For any vCPU. */
static inline _Bool is_vcpu_preempted_ecs(const struct unspin_pv_page *pv_page)
{
	return *(const volatile unspin_u32 *)&pv_page->vcpu_preempted != 0;
}

/*
 * Whether the host has published that another task could run on the pCPU of the vCPU with this page. May be out of
 * date.
 */
static inline _Bool is_pcpu_overcommitted_ecs(const struct unspin_pv_page *pv_page)
{
	return *(const volatile unspin_u32 *)&pv_page->pcpu_overloaded != 0;
}

/* A section of this class begins. Called when the lock is held, the reader inside, or the handler running. */
static inline void ecs_begins(struct unspin_pv_page *pv_page, enum unspin_section_class class)
{
	if (!pv_page)
		return;
	ecs_add(&pv_page->class_count[class], 1);
	if (class < UNSPIN_SECTION_MUTEX)
		activate_non_preemptable_ecs(pv_page);
	else
		activate_preemptable_ecs(pv_page);
}

/*
 * The section ends. Called just before unlock, so that a task that unlock wakes does not find the section still
 * counted.
 */
static inline void ecs_ends(struct unspin_pv_page *pv_page, enum unspin_section_class class)
{
	if (!pv_page)
		return;
	if (class < UNSPIN_SECTION_MUTEX)
		deactivate_non_preemptable_ecs(pv_page);
	else
		deactivate_preemptable_ecs(pv_page);
	ecs_add(&pv_page->class_count[class], -1u);
}

/* Called before the caller begins to wait for a lock. */
static inline void ecs_asks(struct unspin_pv_page *pv_page)
{
	if (pv_page)
		ecs_add(&pv_page->critical, 1);
}

/*
 * Called after the end of a section without a lock. Returns whether this CPU is borrowed and must be given back now, by
 * UNSPIN_HYPERCALL_GIVE_BACK; clears the flag `borrowed`. The host sets the flag only while the vCPU is outside the
 * guest and in a critical section, so a read after the section's end misses no flag.
 */
static inline _Bool ecs_gives_back(struct unspin_pv_page *pv_page)
{
	if (!pv_page || !*(volatile unspin_u32 *)&pv_page->borrowed ||
	    *(volatile unspin_u32 *)&pv_page->critical != 0 ||
	    *(volatile unspin_u32 *)&pv_page->non_preemptable_ecs_count != 0 ||
	    *(volatile unspin_u32 *)&pv_page->preemptable_ecs_count != 0)
		return 0;
	*(volatile unspin_u32 *)&pv_page->borrowed = 0;
	return 1;
}

/* Called after unlock. Returns the same as ecs_gives_back(). */
static inline _Bool ecs_released(struct unspin_pv_page *pv_page)
{
	if (!pv_page)
		return 0;
	ecs_add(&pv_page->critical, -1u);
	return ecs_gives_back(pv_page);
}

/* The preemptable sections of a task that is switched out (eCS section 3.2). */
struct ecs_saved {
	unspin_u32 preemptable;
	unspin_u32 mutex, rwsem_write, rwsem_read;
};

/* A task is switched out: moves its preemptable sections from the vCPU's page to `saved`. */
static inline void ecs_save(struct unspin_pv_page *pv_page, struct ecs_saved *saved)
{
	*saved = (struct ecs_saved){pv_page->preemptable_ecs_count, pv_page->class_count[UNSPIN_SECTION_MUTEX],
				    pv_page->class_count[UNSPIN_SECTION_RWSEM_WRITE],
				    pv_page->class_count[UNSPIN_SECTION_RWSEM_READ]};
	ecs_add(&pv_page->preemptable_ecs_count, -saved->preemptable);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_MUTEX], -saved->mutex);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_RWSEM_WRITE], -saved->rwsem_write);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_RWSEM_READ], -saved->rwsem_read);
}

/* A task is switched in, after ecs_save() of the previous one: adds its sections to the vCPU's page again. */
static inline void ecs_restore(struct unspin_pv_page *pv_page, const struct ecs_saved *saved)
{
	ecs_add(&pv_page->preemptable_ecs_count, saved->preemptable);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_MUTEX], saved->mutex);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_RWSEM_WRITE], saved->rwsem_write);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_RWSEM_READ], saved->rwsem_read);
}

#endif
