/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hint.c - what this vCPU tells the host while it asks for, holds and waits, and how it gives a borrowed CPU back
 * (abi/hint.h).
 *
 * The host reads it on this vCPU's own thread only, so program order is enough: volatile stores keep it. `critical` goes up
 * before a lock is asked for and down after unlock, so the host never sees a holder without it.
 */
#include "guest.h"

static void set32(unspin_u32 *word, unspin_u32 value)
{
	*(volatile unspin_u32 *)word = value;
}

/*
 * The faults of a page: it goes away (its magic, and at every other registration its address), or lies, every word at random.
 * Returns whether the address shall be one where nothing is.
 */
static _Bool hint_spoil(struct vcpu *self)
{
	unspin_u32 *words = (unspin_u32 *)hint_of(self->number);
	unspin_u64 random;

	if (PARAMETERS->fault_injection == UNSPIN_FAULT_HINT_GONE) {
		random = random_next(&self->turn.random);
		set32(&hint_of(self->number)->magic, random & 1 ? UNSPIN_HINT_MAGIC : 0);
		return (random & 2) != 0;
	}
	if (PARAMETERS->fault_injection != UNSPIN_FAULT_HINT_LIES)
		return 0;
	for (unsigned i = 1; i < sizeof(struct unspin_hint) / sizeof(*words); i++)
		set32(&words[i], (unspin_u32)random_next(&self->turn.random));
	return 0;
}

/* A registration may be missed, a watcher come late or be exchanged: soon enough for the one, rare enough for the other. */
#define UNANSWERED_EVERY_TURNS 256u
#define ANSWERED_EVERY_TURNS 1024u

/*
 * KVM does not know the number: its answer says nothing. Whether somebody watches is what stands in `acknowledged` when the
 * guest is entered again. Memory is mapped one to one.
 */
void hint_register(struct vcpu *self)
{
	struct unspin_hint *hint = hint_of(self->number);
	unspin_u64 address = (unspin_u64)hint;
	_Bool acknowledged;

	if (hint_spoil(self))
		address = UNSPIN_GUEST_MEMORY_BYTES + address;
	set32(&hint->acknowledged, 0);
	/* What a host that has gone said last; one that is there says it anew. */
	set32(&hint->vcpu_preempted, 0);
	set32(&hint->pcpu_overloaded, 0);
	set32(&hint->spin_turns, 0);
	(void)hypercall(self->by_vmmcall, UNSPIN_HYPERCALL_REGISTER_HINT, address, 0);
	acknowledged = *(volatile unspin_u32 *)&hint->acknowledged == UNSPIN_HINT_MAGIC;
	self->statistics->hint_registrations++;
	self->statistics->hint_acknowledgements += acknowledged;
	self->hint_every_turns = acknowledged ? ANSWERED_EVERY_TURNS : UNANSWERED_EVERY_TURNS;
	self->turns_until_hint = self->hint_every_turns;
}

/* Once, before the first turn. */
void hint_start(struct vcpu *self)
{
	if (!PARAMETERS->hints)
		return;
	hint_of(self->number)->magic = UNSPIN_HINT_MAGIC;
	hint_register(self);
}

static void set64(unspin_u64 *word, unspin_u64 value)
{
	*(volatile unspin_u64 *)word = value;
}

void hint_asks(struct vcpu *self, unspin_u32 lock)
{
	struct unspin_hint *hint = hint_of(self->number);

	ecs_asks(hint);
	set64(&hint->lock, lock);
	set64(&hint->asked_tsc, self->turn.wait.begin_tsc);
	set32(&hint->waiting, UNSPIN_HINT_WAITS_FOR_LOCK);
}

void hint_holds(struct vcpu *self)
{
	set32(&hint_of(self->number)->holding, 1);
	set32(&hint_of(self->number)->waiting, UNSPIN_HINT_NOT_WAITING);
}

/* What was borrowed. In any context: the host does not come back before the vCPU runs again. */
void hint_gives_back(struct vcpu *self)
{
	(void)hypercall(self->by_vmmcall, UNSPIN_HYPERCALL_GIVE_BACK, 0, 0);
}

void hint_released(struct vcpu *self)
{
	set32(&hint_of(self->number)->holding, 0);
	if (ecs_released(hint_of(self->number)))
		hint_gives_back(self);
}

void hint_waits_for_answers(struct vcpu *self, unspin_u64 targets)
{
	struct unspin_hint *hint = hint_of(self->number);

	set64(&hint->targets, targets);
	set64(&hint->asked_tsc, self->turn.wait.begin_tsc);
	set32(&hint->waiting, UNSPIN_HINT_WAITS_FOR_ANSWERS);
}

void hint_waits_no_more(struct vcpu *self)
{
	set32(&hint_of(self->number)->waiting, UNSPIN_HINT_NOT_WAITING);
}
