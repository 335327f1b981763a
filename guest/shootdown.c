/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shootdown.c - TLB shootdowns as in kernels: post the request, send an IPI to all others, spin until all have
 * answered.
 *
 * A request is a bit in the receiver's inbox, posted before the IPI. So a late receiver may find several senders at
 * once, and an IPI that merges with a pending one loses no request.
 */
#include "guest.h"

/*
 * Sends a shootdown and waits for all answers. Interrupts are on, so that two senders can answer each other; preemption
 * is off, since a vCPU has one shootdown at a time. Does nothing in a VM of one vCPU.
 */
void shootdown(struct vcpu *self)
{
	unspin_u64 targets = all_vcpus() & ~(1ull << self->number);
	struct unspin_guest_statistics *statistics = self->statistics;
	unspin_u32 left;

	if (targets == 0)
		return;
	preempt_disable(self);
	wait_begin(self, UNSPIN_WAIT_SHOOTDOWN, 0, targets);
	set_state(self, UNSPIN_STATE_SHOOTDOWN);
	pv_page_waits_for_answers(self, targets);
	platform_store_relaxed(&self->unanswered, PARAMETERS->vcpus - 1);
	for (unspin_u32 i = 0; i < PARAMETERS->vcpus; i++) {
		if (i != self->number) /* release: a vCPU that takes the bit sees `unanswered` */
			__atomic_fetch_or(&vcpu_of(i)->inbox, 1ull << self->number, __ATOMIC_RELEASE);
	}
	apic_send_all_others(VECTOR_SHOOTDOWN);

	left = platform_load_acquire(&self->unanswered);
	while (left)
		left = platform_wait_while(&self->unanswered, left, PLATFORM_FOREVER);
	wait_end(self);
	pv_page_waits_no_more(self);
	set_state(self, UNSPIN_STATE_KERNEL);
	statistics->shootdowns++;
	statistics->shootdown_wait_cycles += self->iteration.wait.end_tsc - self->iteration.wait.begin_tsc;
	statistics->shootdown_wait_stolen_ns += self->iteration.wait_stolen_ns;
	histogram_add(&statistics->shootdown_wait, self->iteration.wait.end_tsc - self->iteration.wait.begin_tsc);
	wait_log(self);
	preempt_enable(self);
}

/* Invalidates one page and answers all senders. */
void handle_shootdown(struct interrupt_frame *frame)
{
	struct vcpu *self = this_vcpu();
	unspin_u64 senders = __atomic_exchange_n(&self->inbox, 0, __ATOMIC_ACQUIRE);

	(void)frame;
	interrupt_begins(self);
	/* A page just past the end of memory: costs as much as any, and no mapping in use is invalidated. */
	__asm__ volatile("invlpg (%0)" : : "r"((unspin_u64)UNSPIN_GUEST_MEMORY_BYTES) : "memory");
	while (senders) {
		unspin_u32 sender = (unspin_u32)__builtin_ctzll(senders);

		senders &= senders - 1;
		answer_log(self, sender); /* logged first: the answer may end the sender's wait at once */
		platform_fetch_add_release(&vcpu_of(sender)->unanswered, (unspin_u32)-1);
		self->statistics->shootdowns_answered++;
	}
	wrmsr(MSR_X2APIC_EOI, 0);
	interrupt_ends(self);
}

/* The vCPUs that have not taken the request of `self` from their inbox yet, one bit each; may be out of date. */
unspin_u64 shootdown_unanswered(const struct vcpu *self)
{
	unspin_u64 unanswered = 0;

	for (unspin_u32 i = 0; i < PARAMETERS->vcpus; i++) {
		unspin_u64 inbox = __atomic_load_n(&vcpu_of(i)->inbox, __ATOMIC_RELAXED);

		unanswered |= (inbox >> self->number & 1) << i;
	}
	return unanswered;
}
