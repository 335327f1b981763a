/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exits.bpf.h - what the current vCPU's exit was, where its guest was, and the pause-loop window that was in force, from KVM's
 * structures, on AMD and Intel.
 *
 * For kvm_exit programs, with its `isa`. struct kvm_vcpu is the first member of struct vcpu_svm and of struct vcpu_vmx. Safe reads,
 * which give 0 where they fail.
 */
#ifndef UNSPIN_BPF_COMMON_EXITS_H
#define UNSPIN_BPF_COMMON_EXITS_H

#include "exit_codes.h"
#include "kernel_types.h"

#include "../../policy/classify/spin_places.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The window is in PAUSEs on AMD, in TSC cycles on Intel; 0: pause-loop exits are off. */
struct exit_code {
	u32 code;
	u32 window;
};

static __always_inline bool is_svm(u32 isa)
{
	return isa == KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_svm);
}

static __always_inline bool is_vmx(u32 isa)
{
	return isa != KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_vmx);
}

static __always_inline struct vmcb *vmcb_of(struct kvm_vcpu *vcpu)
{
	return BPF_CORE_READ((struct vcpu_svm *)vcpu, vmcb);
}

static __always_inline struct exit_code svm_exit_code(struct vmcb *vmcb)
{
	return (struct exit_code){BPF_CORE_READ(vmcb, control.exit_code),
				  BPF_CORE_READ(vmcb, control.pause_filter_count)};
}

/*
 * Whether the guest's registers are encrypted (SEV-ES): KVM's structures have no valid mode and instruction pointer then. There are such
 * guests since Linux 5.11. By a safe read: `vcpu` may be an address that was kept.
 */
static __always_inline bool is_protected(struct kvm_vcpu *vcpu)
{
	return bpf_core_field_exists(vcpu->arch.guest_state_protected) &&
	       BPF_CORE_READ(vcpu, arch.guest_state_protected);
}

/* Where the guest was; it is not protected. VMX keeps that where only hardware reads it. */
static __always_inline struct unspin_code_place svm_place(struct vmcb *vmcb)
{
	struct unspin_code_place where = {BPF_CORE_READ(vmcb, save.rip), 0};

	if (BPF_CORE_READ(vmcb, save.cpl) >= USER_CPL)
		where.space = BPF_CORE_READ(vmcb, save.cr3);
	return where;
}

static __always_inline struct exit_code vmx_exit_code(struct kvm_vcpu *vcpu)
{
	struct exit_code exit;

	if (bpf_core_field_exists(struct vcpu_vmx, vt))
		exit.code = BPF_CORE_READ((struct vcpu_vmx *)vcpu, vt.exit_reason.full);
	else
		exit.code = BPF_CORE_READ((struct vcpu_vmx___before_6_15 *)vcpu, exit_reason.full);
	exit.code = (u16)exit.code;
	exit.window = BPF_CORE_READ((struct vcpu_vmx *)vcpu, ple_window);
	return exit;
}

/* Whether KVM has read anything of the guest's segments since the last exit. */
static __always_inline bool vmx_has_read_segments(struct kvm_vcpu *vcpu)
{
	struct kvm_vcpu_arch___before_7_2 *before = (void *)&vcpu->arch;
	u64 read, bit;

	if (bpf_core_enum_value_exists(enum kvm_reg, VCPU_REG_SEGMENTS)) {
		read = BPF_CORE_READ(vcpu, arch.regs_avail[0]);
		bit = bpf_core_enum_value(enum kvm_reg, VCPU_REG_SEGMENTS);
	} else {
		read = BPF_CORE_READ(before, regs_avail);
		bit = bpf_core_enum_value(enum kvm_reg___before_7_2, VCPU_EXREG_SEGMENTS);
	}
	return read >> (bit & 63) & 1;
}

#endif
