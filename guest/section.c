/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * section.c - critical sections by class, as the host may read them (abi/guest/pv_page.h; eCS, section 3) and as the ground truth of
 * preemptions has them. Only this vCPU writes them; an interrupt leaves them as it found them.
 */
#include "guest.h"

/* The lock is held, or the handler runs. What was stolen until now was stolen outside of it. */
void section_begins(struct vcpu *self, enum unspin_section_class class)
{
	preemption_poll(self);
	ecs_begins(pv_page_of(self->number), class);
}

/* The lock is about to be given back. */
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

/* A task is switched out: what it holds does not concern the host while others run. The ablation leaves that out. */
void sections_save(struct vcpu *self, struct saved_sections *saved)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);

	saved->critical = pv_page->critical;
	saved->holding = pv_page->holding;
	saved->waiting = pv_page->waiting;
	if (!PARAMETERS->ecs_no_save)
		ecs_save(pv_page, &saved->ecs);
}

/* A task is switched in: its sections are the vCPU's. */
void sections_restore(struct vcpu *self, const struct saved_sections *saved)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);

	pv_page->critical = saved->critical;
	pv_page->holding = saved->holding;
	pv_page->waiting = saved->waiting;
	if (!PARAMETERS->ecs_no_save)
		ecs_restore(pv_page, &saved->ecs);
}
