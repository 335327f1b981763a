/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ecs.h - what a guest or a program publishes of its critical sections: eCS's six calls, and the loan's counter.
 *
 * Source: Kashyap, Min and Kim, "Scaling Guest OS Critical Sections with eCS" (ATC 2018), Table 1 and section 3.2; ruling 21 (names
 * end in _ecs), ruling 23 (one counter for each class beside the paper's two sums). Ours: `critical`, raised before a lock is asked
 * for and lowered after unlock, and the give-back of a borrowed CPU (abi/guest/pv_page.h).
 *
 * A pv page is written by its own vCPU or thread alone, and read by the host on that one: program order is enough. So these
 * are plain additions, volatile to stay where they stand; an interrupt between load and store leaves the counters as it found
 * them. A null page: nothing is published. Any context; nothing fails.
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

/* Mutexes and semaphores: sections of a task, which takes them along when it is switched out. */
static inline void activate_preemptable_ecs(struct unspin_pv_page *pv_page)
{
	ecs_add(&pv_page->preemptable_ecs_count, 1);
}

static inline void deactivate_preemptable_ecs(struct unspin_pv_page *pv_page)
{
	ecs_add(&pv_page->preemptable_ecs_count, -1u);
}

/* Whether the vCPU with that page is descheduled, as its host has published. A sample, from any vCPU. */
static inline _Bool is_vcpu_preempted_ecs(const struct unspin_pv_page *pv_page)
{
	return *(const volatile unspin_u32 *)&pv_page->vcpu_preempted != 0;
}

/* Whether another task could run on the pCPU of the vCPU with that page, as its host has published. */
static inline _Bool is_pcpu_overcommitted_ecs(const struct unspin_pv_page *pv_page)
{
	return *(const volatile unspin_u32 *)&pv_page->pcpu_overloaded != 0;
}

/* A section of that class begins: the lock is held, the reader inside, the handler runs. */
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

/* It ends; just before the lock is opened, so that a task that is woken by that does not find it. */
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

/* A lock is about to be asked for. */
static inline void ecs_asks(struct unspin_pv_page *pv_page)
{
	if (pv_page)
		ecs_add(&pv_page->critical, 1);
}

/*
 * After the end of a section that no lock stands for: whether this CPU is borrowed and to be given back now, by
 * UNSPIN_HYPERCALL_GIVE_BACK. The host sets the flag only while we are outside and still critical, so a read after that misses
 * none. The flag is cleared.
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

/* It has been opened. Answers as above. */
static inline _Bool ecs_released(struct unspin_pv_page *pv_page)
{
	if (!pv_page)
		return 0;
	ecs_add(&pv_page->critical, -1u);
	return ecs_gives_back(pv_page);
}

/* The preemptable sections of a task that does not run (eCS section 3.2). */
struct ecs_saved {
	unspin_u32 preemptable;
	unspin_u32 mutex, rwsem_write, rwsem_read;
};

/* A task is switched out: its sections are not the vCPU's while others run. */
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

/* A task is switched in, after the one before it was saved. */
static inline void ecs_restore(struct unspin_pv_page *pv_page, const struct ecs_saved *saved)
{
	ecs_add(&pv_page->preemptable_ecs_count, saved->preemptable);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_MUTEX], saved->mutex);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_RWSEM_WRITE], saved->rwsem_write);
	ecs_add(&pv_page->class_count[UNSPIN_SECTION_RWSEM_READ], saved->rwsem_read);
}

#endif
