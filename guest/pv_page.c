/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pv_page.c - publishes to the host when this vCPU waits for locks and holds them, and gives a borrowed CPU back
 * (abi/guest/pv_page.h).
 *
 * The host reads the page on this vCPU's own thread only, so program order is enough; volatile stores keep it.
 * `critical` is raised before the wait for a lock and lowered after unlock, so the host never sees a holder with
 * `critical` 0.
 */
#include "guest.h"

static void set32(unspin_u32 *word, unspin_u32 value)
{
	*(volatile unspin_u32 *)word = value;
}

/*
 * Injects faults: the page disappears (at random its magic number, and the registered address), or all its words are
 * random. Returns whether an address outside of memory shall be registered.
 */
static _Bool pv_page_spoil(struct vcpu *self)
{
	unspin_u32 *words = (unspin_u32 *)pv_page_of(self->number);
	unspin_u64 random;

	if (PARAMETERS->fault_injection == UNSPIN_FAULT_PV_PAGE_GONE) {
		random = random_next(&self->iteration.random);
		set32(&pv_page_of(self->number)->magic, random & 1 ? UNSPIN_PV_PAGE_MAGIC : 0);
		return (random & 2) != 0;
	}
	if (PARAMETERS->fault_injection != UNSPIN_FAULT_PV_PAGE_LIES)
		return 0;
	for (unsigned i = 1; i < sizeof(struct unspin_pv_page) / sizeof(*words); i++)
		set32(&words[i], (unspin_u32)random_next(&self->iteration.random));
	return 0;
}

/*
 * Registration is repeated, because a host program may start late, be replaced, or miss one: often while none has
 * acknowledged, rarely afterwards.
 */
#define UNANSWERED_EVERY_ITERATIONS 256u
#define ANSWERED_EVERY_ITERATIONS 1024u

/*
 * Registers the page. KVM does not know the hypercall's number, so its return value is ignored; a host program that
 * reads the page has set `acknowledged` when the guest is entered again. Memory is identity-mapped.
 */
void pv_page_register(struct vcpu *self)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);
	unspin_u64 address = (unspin_u64)pv_page;
	_Bool acknowledged;

	if (pv_page_spoil(self))
		address = UNSPIN_GUEST_MEMORY_BYTES + address;
	set32(&pv_page->acknowledged, 0);
	/* May be left over from a host program that has ended; a running one writes them again. */
	set32(&pv_page->vcpu_preempted, 0);
	set32(&pv_page->pcpu_overloaded, 0);
	set32(&pv_page->spin_count, 0);
	(void)hypercall(self->by_vmmcall, UNSPIN_HYPERCALL_REGISTER_PV_PAGE, address, 0);
	acknowledged = *(volatile unspin_u32 *)&pv_page->acknowledged == UNSPIN_PV_PAGE_MAGIC;
	self->statistics->pv_page_registrations++;
	self->statistics->pv_page_acknowledgements += acknowledged;
	self->pv_page_every_iterations = acknowledged ? ANSWERED_EVERY_ITERATIONS : UNANSWERED_EVERY_ITERATIONS;
	self->iterations_until_pv_page = self->pv_page_every_iterations;
}

/* Called once, before the first iteration. */
void pv_page_start(struct vcpu *self)
{
	if (!PARAMETERS->pv_page)
		return;
	pv_page_of(self->number)->magic = UNSPIN_PV_PAGE_MAGIC;
	pv_page_register(self);
}

static void set64(unspin_u64 *word, unspin_u64 value)
{
	*(volatile unspin_u64 *)word = value;
}

void pv_page_asks(struct vcpu *self, unspin_u32 lock)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);

	ecs_asks(pv_page);
	set64(&pv_page->lock, lock);
	set64(&pv_page->asked_tsc, self->iteration.wait.begin_tsc);
	set32(&pv_page->waiting, UNSPIN_PV_PAGE_WAITS_FOR_LOCK);
}

void pv_page_holds(struct vcpu *self)
{
	set32(&pv_page_of(self->number)->holding, 1);
	set32(&pv_page_of(self->number)->waiting, UNSPIN_PV_PAGE_NOT_WAITING);
}

/* Gives a borrowed CPU back. Any context; the hypercall returns when this vCPU runs again. */
void pv_page_gives_back(struct vcpu *self)
{
	(void)hypercall(self->by_vmmcall, UNSPIN_HYPERCALL_GIVE_BACK, 0, 0);
}

void pv_page_released(struct vcpu *self)
{
	set32(&pv_page_of(self->number)->holding, 0);
	if (ecs_released(pv_page_of(self->number)))
		pv_page_gives_back(self);
}

void pv_page_waits_for_answers(struct vcpu *self, unspin_u64 targets)
{
	struct unspin_pv_page *pv_page = pv_page_of(self->number);

	set64(&pv_page->targets, targets);
	set64(&pv_page->asked_tsc, self->iteration.wait.begin_tsc);
	set32(&pv_page->waiting, UNSPIN_PV_PAGE_WAITS_FOR_ANSWERS);
}

void pv_page_waits_no_more(struct vcpu *self)
{
	set32(&pv_page_of(self->number)->waiting, UNSPIN_PV_PAGE_NOT_WAITING);
}
