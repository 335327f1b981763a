/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hint.c - what this vCPU tells the host while it asks for, holds and waits, and how it gives a borrowed CPU back
 * (abi/hint.h).
 *
 * The host reads it on this vCPU's own thread only, so program order is enough: volatile stores keep it. `critical` goes up
 * before a lock is asked for and down after unlock, so the host never sees a holder without it.
 */
#include "guest.h"

/* A watcher may come late or miss a registration: often enough to be soon, rare enough to cost nothing that is measured. */
#define HINT_EVERY_TURNS 256u

/* Once, before the first turn. */
void hint_start(struct vcpu *self)
{
	struct cpuid maker = cpuid(0);

	if (!PARAMETERS->hints && !PARAMETERS->help_after_turns)
		return;
	/* "AuthenticAMD" and "HygonGenuine" have VMMCALL, everybody else VMCALL. */
	self->hint_by_vmmcall = maker.ebx == 0x68747541 || maker.ebx == 0x6f677948;
	if (!PARAMETERS->hints)
		return;
	self->hint.magic = UNSPIN_HINT_MAGIC;
	self->hint_every_turns = HINT_EVERY_TURNS;
	self->turns_until_hint = HINT_EVERY_TURNS;
	hint_register(self);
}

/* KVM does not know the number: its answer says nothing. Memory is mapped one to one. */
void hint_register(struct vcpu *self)
{
	(void)hypercall(self->hint_by_vmmcall, UNSPIN_HYPERCALL_REGISTER_HINT, (unspin_u64)&self->hint);
}

/* Friebel 2008, "Helping locks": anonymous, the host chooses whom to run. */
void hint_asks_for_help(struct vcpu *self)
{
	(void)hypercall(self->hint_by_vmmcall, UNSPIN_HYPERCALL_HELP, 0);
}

static void set32(unspin_u32 *word, unspin_u32 value)
{
	*(volatile unspin_u32 *)word = value;
}

static void set64(unspin_u64 *word, unspin_u64 value)
{
	*(volatile unspin_u64 *)word = value;
}

void hint_asks(struct vcpu *self, unspin_u32 lock)
{
	struct unspin_hint *hint = &self->hint;

	set32(&hint->critical, 1);
	set64(&hint->lock, lock);
	set64(&hint->asked_tsc, self->wait.begin_tsc);
	set32(&hint->waiting, UNSPIN_HINT_WAITS_FOR_LOCK);
}

void hint_holds(struct vcpu *self)
{
	set32(&self->hint.holding, 1);
	set32(&self->hint.waiting, UNSPIN_HINT_NOT_WAITING);
}

void hint_released(struct vcpu *self)
{
	set32(&self->hint.holding, 0);
	set32(&self->hint.critical, 0);
	/* The host sets it only while this vCPU is outside and still critical: looked at after that, none is missed. */
	if (*(volatile unspin_u32 *)&self->hint.borrowed) {
		set32(&self->hint.borrowed, 0);
		(void)hypercall(self->hint_by_vmmcall, UNSPIN_HYPERCALL_GIVE_BACK, 0);
	}
}

void hint_waits_for_answers(struct vcpu *self, unspin_u64 targets)
{
	struct unspin_hint *hint = &self->hint;

	set64(&hint->targets, targets);
	set64(&hint->asked_tsc, self->wait.begin_tsc);
	set32(&hint->waiting, UNSPIN_HINT_WAITS_FOR_ANSWERS);
}

void hint_waits_no_more(struct vcpu *self)
{
	set32(&self->hint.waiting, UNSPIN_HINT_NOT_WAITING);
}
