/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * wakeup.c - vCPUs that sleep in HLT and wake each other.
 *
 * No wake-up is lost: what a sleeper waits for is read with interrupts off, the provider provides it before it
 * sends the IPI, and HLT returns at once when an interrupt is pending.
 */
#include "guest.h"

/* Sleeps until all vCPUs have come here with the same counter, which begins as 0. Returns with interrupts on. */
void barrier(struct vcpu *self, unspin_u32 *arrived)
{
	interrupts_off();
	if (__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL) == PARAMETERS->vcpus) {
		if (PARAMETERS->vcpus > 1)
			apic_send_all_others(VECTOR_WAKE);
	} else {
		while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) != PARAMETERS->vcpus) {
			self->statistics->halts++;
			vcpu_halt(self);
		}
	}
	interrupts_on();
}

/* Before a vCPU leaves because of `stop`: sleepers read again, and see it too. */
void wake_all_to_stop(void)
{
	if (PARAMETERS->vcpus > 1)
		apic_send_all_others(VECTOR_WAKE);
}

/*
 * Gives the next vCPU of the ring a token and a wake-up, then sleeps until there is a token of one's own, and takes it.
 * No wait is endless: the vCPU that has given the fewest has a predecessor that gave at least as many, so it has
 * one to take; all vCPUs give equally many before they are done; and `stop` ends the wait.
 */
void pass_token(struct vcpu *self)
{
	unspin_u32 next = self->number + 1 == PARAMETERS->vcpus ? 0 : self->number + 1;

	__atomic_fetch_add(&vcpu_of(next)->tokens, 1, __ATOMIC_RELEASE);
	self->statistics->wakeups++;
	if (next != self->number)
		apic_send(next, VECTOR_WAKE);

	interrupts_off();
	while (__atomic_load_n(&self->tokens, __ATOMIC_ACQUIRE) == 0 && !stop_asked()) {
		self->statistics->halts++;
		vcpu_halt(self);
	}
	interrupts_on();
	set_state(self, UNSPIN_STATE_KERNEL);
	if (__atomic_load_n(&self->tokens, __ATOMIC_RELAXED) == 0)
		return;						/* stop was asked */
	__atomic_fetch_sub(&self->tokens, 1, __ATOMIC_RELAXED); /* no other vCPU takes from it */
	self->statistics->wakeups_received++;
}
