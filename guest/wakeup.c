/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * wakeup.c - vCPUs that halt and wake each other by IPIs.
 *
 * No wake-up is lost: a sleeper reads the word it waits for with interrupts off, the waker changes the word before it
 * sends the IPI, and HLT returns at once if an interrupt is pending.
 */
#include "guest.h"

/* Waits until all vCPUs have called it with the same counter, which starts at 0. Returns with interrupts on. */
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

/* Called before a vCPU ends because of `stop`: wakes all others, so that they read it too. */
void wake_all_to_stop(void)
{
	if (PARAMETERS->vcpus > 1)
		apic_send_all_others(VECTOR_WAKE);
}

/*
 * Gives the next vCPU of the ring a token and a wake-up, then halts until this vCPU has a token, and takes it. No wait
 * is endless: the vCPU that has given the fewest tokens has a predecessor that gave at least as many, so it has one to
 * take; all vCPUs give the same number before they end; and `stop` ends the wait.
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
	__atomic_fetch_sub(&self->tokens, 1, __ATOMIC_RELAXED); /* only this vCPU takes tokens from it */
	self->statistics->wakeups_received++;
}
