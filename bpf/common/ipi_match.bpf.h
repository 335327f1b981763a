/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ipi_match.bpf.h - finds which interrupts that a vCPU's thread posts are inter-processor interrupts (IPIs) of that
 * vCPU.
 *
 * How KVM delivers an IPI (Linux 7.2, arch/x86/kvm): for each receiver the sender's thread calls __apic_accept_irq()
 * (lapic.c), which fires kvm_apic_accept_irq(vcpu_id of the receiver, delivery mode, trigger mode, vector). That it is
 * an IPI is seen from another tracepoint, and the order of the two depends on the path:
 * - Slow: kvm_apic_send_ipi() fires kvm_apic_ipi(icr_low, destination) and then delivers. xAPIC writes, the shorthands
 *   "all" and "all but self", broadcasts, APIC_SELF_IPI, and AVIC's incomplete IPIs of invalid type or target.
 * - Fast: kvm_x2apic_icr_write_fast(), called with interrupts off right after kvm_exit, delivers and then fires
 *   kvm_apic_ipi. x2APIC writes with a physical or logical destination or the shorthand "self": 16 receivers at most
 *   (kvm_irq_delivery_to_apic_fast() walks a bitmap of 16). If it cannot deliver it fires nothing and the slow path
 *   follows.
 * - KVM_HC_SEND_IPI: fires kvm_hypercall with the ICR in a3, then delivers; kvm_apic_ipi is not fired.
 * So receivers are kept in struct unspin_ipi_sender until kvm_apic_ipi confirms them, and kvm_apic_ipi makes IPIs of
 * the interrupts that follow it; both only until the sender's next exit, and only with the same vector and delivery
 * mode. An interrupt that is never confirmed is no IPI but the vCPU's own timer, a device's interrupt that a VMM or an
 * interrupt handler injects on this thread, or a kick (KVM_HC_KICK_CPU).
 *
 * Not seen: IPIs that hardware delivers (AVIC, Intel's IPI virtualisation; agent::ipi_visibility() reports whether a host
 * has them), and those of Hyper-V and Xen hypercalls. Taken for an IPI by mistake: an interrupt of the same vector and
 * mode that is injected on the sender's thread, for any vCPU, before the sender's next exit.
 *
 * The includer defines beforehand the type IPI_CONTEXT and what is done with each receiver: ipi_reaches(IPI_CONTEXT
 * *context, sender, time_ns, receiver). `exits` is a count of the sender's exits, or of its entries, that starts at 1.
 * All functions run on the sender's thread.
 */
#ifndef UNSPIN_BPF_COMMON_IPI_MATCH_H
#define UNSPIN_BPF_COMMON_IPI_MATCH_H

#include "../../abi/bpf/events.h"
#include "../../abi/bpf/observe.h"

/* arch/x86/include/asm/apicdef.h: fields of the low half of the ICR. */
#define ICR_VECTOR_AND_MODE 0x7ff
#define ICR_LOGICAL 0x800
#define ICR_SHORTHAND_SHIFT 18
/* include/uapi/linux/kvm_para.h */
#define KVM_HC_SEND_IPI 10

static __always_inline u32 ipi_form(u32 icr_low)
{
	switch (icr_low >> ICR_SHORTHAND_SHIFT & 3) {
	case 1:
		return UNSPIN_IPI_SELF;
	case 2:
		return UNSPIN_IPI_ALL;
	case 3:
		return UNSPIN_IPI_ALL_BUT_SELF;
	}
	return icr_low & ICR_LOGICAL ? UNSPIN_IPI_LOGICAL : UNSPIN_IPI_PHYSICAL;
}

/* The current vCPU sends an IPI: matching interrupts until its next exit are deliveries of it. */
static __always_inline void announce_ipi(struct unspin_ipi_sender *sender, u64 exits, u64 icr_low, u32 form,
					 u64 destination)
{
	sender->how = (icr_low & ICR_VECTOR_AND_MODE) | form << 16;
	sender->destination = destination;
	sender->exit = exits;
}

/*
 * Reports the receivers of the fast path, which were delivered before kvm_apic_ipi, with the time of the first of them.
 */
static __always_inline void claim_receivers(IPI_CONTEXT *context, struct unspin_ipi_sender *sender, u64 exits)
{
	u32 count = sender->unclaimed_count;

	sender->unclaimed_count = 0;
	if (sender->unclaimed_exit != exits || sender->unclaimed_how != (u16)sender->how)
		return;
	for (u32 i = 0; i < UNSPIN_UNCLAIMED_RECEIVERS; i++) {
		if (i >= count)
			break;
		ipi_reaches(context, sender, sender->unclaimed_ns, sender->unclaimed[i]); /* in bounds by the loop */
	}
	sender->exit = 0; /* all are delivered: later interrupts are not this IPI's. Exits are counted from 1 */
}

/* For kvm_apic_ipi: the current vCPU has written this command to its ICR (interrupt command register). */
static __always_inline void ipi_sent(IPI_CONTEXT *context, struct unspin_ipi_sender *sender, u64 exits, u32 icr_low,
				     u32 destination)
{
	announce_ipi(sender, exits, icr_low, ipi_form(icr_low), destination);
	if (sender->unclaimed_count)
		claim_receivers(context, sender, exits);
}

static __always_inline void keep_receiver(struct unspin_ipi_sender *sender, u64 exits, u32 receiver, u16 how)
{
	u32 count = sender->unclaimed_count;

	if (sender->unclaimed_exit != exits || sender->unclaimed_how != how || count == 0) {
		sender->unclaimed_exit = exits;
		sender->unclaimed_how = how;
		sender->unclaimed_ns = bpf_ktime_get_ns();
		count = 0;
	}
	if (count >= UNSPIN_UNCLAIMED_RECEIVERS)
		return; /* the fast path has no more than UNSPIN_UNCLAIMED_RECEIVERS: this is no IPI */
	sender->unclaimed[count] = receiver;
	sender->unclaimed_count = count + 1;
}

/* For kvm_apic_accept_irq: the thread of vCPU `self` handles an exit and posts an interrupt to vCPU `receiver`. */
static __always_inline void interrupt_accepted(IPI_CONTEXT *context, struct unspin_ipi_sender *sender, u64 exits,
					       u32 self, u32 receiver, u16 delivery_mode, u8 vector)
{
	u16 how = (delivery_mode | vector) & ICR_VECTOR_AND_MODE;

	if (sender->exit != exits || (u16)sender->how != how) {
		keep_receiver(sender, exits, receiver, how);
		return;
	}
	/*
	 * "All but self" is not delivered to the sender: this is another interrupt with the vector, such as its own
	 * timer's.
	 */
	if (receiver == self && sender->how >> 16 == UNSPIN_IPI_ALL_BUT_SELF)
		return;
	ipi_reaches(context, sender, bpf_ktime_get_ns(), receiver);
}

#endif
