/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * section.c - counts critical sections by class, for the host (abi/guest/pv_page.h; eCS, section 3) and for the ground
 * truth of preemptions. Only this vCPU writes the counters; an interrupt handler restores them before it returns.
 */
#include "guest.h"

/*
 * Called when the lock is held or the handler runs. Time stolen until now is accounted to the sections around this one.
 */
void section_begins(struct vcpu *self, enum unspin_section_class class)
{
	preemption_poll(self);
	ecs_begins(pv_page_of(self->number), class);
}

/* Called just before unlock. */
void section_ends(struct vcpu *self, enum unspin_section_class class)
{
	preemption_poll(self);
	ecs_ends(pv_page_of(self->number), class);
	if (ecs_gives_back(pv_page_of(self->number)))
		pv_page_gives_back(self);
}

void interrupt_begins(struct vcpu *self)
{
	section_begins(self, UNSPIN_SECTION_INTERRUPT);
}

void interrupt_ends(struct vcpu *self)
{
	section_ends(self, UNSPIN_SECTION_INTERRUPT);
}

/*
 * A task is switched out: saves its sections, which do not make the vCPU critical while other tasks run. The ablation
 * `ecs_no_save` leaves the eCS counters as they are.
 */
void sections_save(struct vcpu *self, struct saved_sections *saved)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);

	saved->critical = pv_page->critical;
	saved->holding = pv_page->holding;
	saved->waiting = pv_page->waiting;
	if (!PARAMETERS->ecs_no_save)
		ecs_save(pv_page, &saved->ecs);
}

/* A task is switched in: restores its sections. */
void sections_restore(struct vcpu *self, const struct saved_sections *saved)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);

	pv_page->critical = saved->critical;
	pv_page->holding = saved->holding;
	pv_page->waiting = saved->waiting;
	if (!PARAMETERS->ecs_no_save)
		ecs_restore(pv_page, &saved->ecs);
}
