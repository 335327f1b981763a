/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* apic.c - the local APIC in x2APIC mode: the tick, inter-processor interrupts, and the handlers of both. */
#include "guest.h"

/* Enables the APIC of this vCPU. Called with interrupts off. */
void apic_start(void)
{
	unspin_u64 base = rdmsr(MSR_APIC_BASE);
	unspin_u64 wanted = base | APIC_BASE_ENABLED | APIC_BASE_X2APIC;

	if (base != wanted)
		wrmsr(MSR_APIC_BASE, wanted);
	wrmsr(MSR_X2APIC_SPURIOUS, APIC_SOFTWARE_ENABLED | VECTOR_SPURIOUS);
	wrmsr(MSR_X2APIC_TPR, 0);
	wrmsr(MSR_X2APIC_LVT_LINT0,
	      APIC_LVT_MASKED); /* KVM leaves vCPU 0's LINT0 open to the legacy interrupt controller */
	wrmsr(MSR_X2APIC_LVT_TIMER, APIC_LVT_MASKED);
}

/*
 * Starts the periodic tick, if the parameters set one. KVM rounds periods below its min_timer_period_us (200 by
 * default) up to it, so above 5,000 Hz the real rate is that of statistics->ticks.
 */
void apic_start_tick(void)
{
	if (PARAMETERS->tick_hz == 0)
		return;
	wrmsr(MSR_X2APIC_TIMER_DIVIDE, APIC_TIMER_DIVIDE_BY_1);
	wrmsr(MSR_X2APIC_LVT_TIMER, APIC_TIMER_PERIODIC | VECTOR_TICK);
	wrmsr(MSR_X2APIC_TIMER_COUNT, PARAMETERS->apic_timer_hz / PARAMETERS->tick_hz);
}

/*
 * A write of ICR may pass earlier stores (SDM volume 3, 10.12.3): the fence makes what the receiver reads visible
 * first.
 */
static void icr_write(unspin_u64 value)
{
	__asm__ volatile("mfence\n\tlfence" : : : "memory");
	wrmsr(MSR_X2APIC_ICR, value);
}

/* Sends to all other vCPUs by one write of ICR, which is one exit under KVM. */
void apic_send_all_others(unspin_u32 vector)
{
	icr_write(APIC_ICR_ALL_BUT_SELF | vector);
}

/* Sends to one vCPU; its x2APIC id is its number. */
void apic_send(unspin_u32 vcpu, unspin_u32 vector)
{
	icr_write((unspin_u64)vcpu << 32 | vector);
}

/* The tick: counts, and switches to another task if there is one (task_tick()). */
void handle_tick(struct interrupt_frame *frame)
{
	struct vcpu *self = this_vcpu();
	struct unspin_guest_statistics *statistics = self->statistics;

	interrupt_begins(self);
	count_one(&statistics->ticks);
	if ((frame->cs & 3) == 3)
		count_one(&statistics->ticks_in_user);
	wrmsr(MSR_X2APIC_EOI, 0);
	interrupt_ends(self);
	task_tick(self, frame);
}

/* Only ends a HLT; the waiter then reads its word itself. */
void handle_wake(struct interrupt_frame *frame)
{
	(void)frame;
	wrmsr(MSR_X2APIC_EOI, 0);
}
