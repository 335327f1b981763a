/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pending_interrupts.bpf.h - whether an interrupt for which its sender may wait is pending in a vCPU's APIC: the input of
 * policy/steering/answer.h where the host does not follow each interrupt.
 *
 * KVM keeps IRR in the APIC's page (arch/x86/kvm/lapic.c, __apic_accept_irq(), Linux 7.2), and so does AVIC. What was posted to a vCPU
 * under VMX is in its descriptor until KVM looks at it, and is not seen here.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_PENDING_INTERRUPTS_H
#define UNSPIN_BPF_SCHEDULER_GUEST_PENDING_INTERRUPTS_H

#include "../../common/reads.bpf.h"
#include "../state.bpf.h"

#include "../../../policy/classify/ple_reason.h"

/* Where IRR is in the page: 8 words of 32 vectors, each in 16 bytes (SDM vol. 3A, table 11-1). */
#define APIC_IRR 0x200
#define APIC_IRR_WORDS 8
#define APIC_BYTES_EACH 16

/*
 * Whether one waits there that is no reschedule of Linux's: nobody waits for that. All reads are safe ones, within the APIC's page;
 * word by word, for the stack is short.
 */
static __always_inline bool has_interrupt(const struct task_context *task)
{
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)task->vcpu;
	struct kvm_lapic *apic;
	bool direct = options.direct_reads;
	u32 word, pending = 0;
	void *irr;

	if (!vcpu || task->vm_generation != destroyed || !bpf_core_field_exists(struct kvm_lapic, irr_pending))
		return false;
	apic = READ(direct, vcpu, arch.apic);
	if (!apic || !READ(direct, apic, irr_pending))
		return false;
	irr = READ(direct, apic, regs) + APIC_IRR;
	for (word = 0; word < APIC_IRR_WORDS; word++) {
		u32 vectors = read_u32(direct, irr + word * APIC_BYTES_EACH);

		if (word == UNSPIN_LINUX_RESCHEDULE / 32)
			vectors &= ~(1u << UNSPIN_LINUX_RESCHEDULE % 32);
		pending |= vectors;
	}
	return pending != 0;
}

#endif
