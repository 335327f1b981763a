/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * guest_exit.bpf.h - reads an exit's code, the guest's mode and its instruction pointer from KVM's structures, on AMD
 * and Intel.
 *
 * struct kvm_vcpu is the first member of struct vcpu_svm and of struct vcpu_vmx, so a pointer to it is a pointer to
 * either. All reads go through READ() (maps.bpf.h), which gives 0 where it fails: a vCPU that is being destroyed gives
 * wrong values, never a fault.
 */
#ifndef UNSPIN_BPF_OBSERVE_GUEST_EXIT_H
#define UNSPIN_BPF_OBSERVE_GUEST_EXIT_H

#include "../common/exit_codes.h"
#include "maps.bpf.h"

struct guest_exit {
	u64 code; /* UNSPIN_UNKNOWN: neither SVM nor VMX */
	bool pause;
	bool interrupt; /* an interrupt for the host caused the exit */
	/* Set for pause-loop exits only. */
	u32 mode; /* enum unspin_guest_mode */
	/* Set for pause-loop exits only, and only with `details`. */
	u32 window; /* as in UNSPIN_EVENT_PAUSE_EXIT */
	u64 rip;    /* UNSPIN_UNKNOWN on VMX: it is in the VMCS, which is read by the VMREAD instruction only */
};

static __always_inline u64 halves(u32 low, u32 high)
{
	return low | (u64)high << 32;
}

static __always_inline u64 at_most(u64 value, u64 largest)
{
	return value < largest ? value : largest;
}

static __always_inline u32 svm_mode(bool direct, struct vmcb *vmcb)
{
	return READ(direct, vmcb, save.cpl) < USER_CPL ? UNSPIN_MODE_KERNEL : UNSPIN_MODE_USER;
}

/*
 * The guest's mode (enum unspin_guest_mode) and instruction pointer at its last exit. On VMX both are in the VMCS,
 * which a BPF program cannot read: UNSPIN_MODE_UNKNOWN, and *rip is left as it was.
 */
static __always_inline u32 read_place(struct kvm_vcpu *vcpu, u32 isa, u64 *rip)
{
	bool direct = options.direct_reads;
	struct vmcb *vmcb;

	if (isa != KVM_ISA_SVM || !bpf_core_type_exists(struct vcpu_svm))
		return UNSPIN_MODE_UNKNOWN;
	vmcb = READ(direct, (struct vcpu_svm *)vcpu, vmcb);
	*rip = READ(direct, vmcb, save.rip);
	return svm_mode(direct, vmcb);
}

static __always_inline void read_svm_exit(struct kvm_vcpu *vcpu, struct guest_exit *exit, bool details)
{
	bool direct = options.direct_reads;
	struct vmcb *vmcb = READ(direct, (struct vcpu_svm *)vcpu, vmcb);

	exit->code = READ(direct, vmcb, control.exit_code);
	exit->pause = exit->code == SVM_EXIT_PAUSE;
	exit->interrupt = exit->code == SVM_EXIT_INTR;
	if (!exit->pause)
		return;
	exit->mode = svm_mode(direct, vmcb);
	if (details) {
		exit->rip = READ(direct, vmcb, save.rip);
		exit->window = READ(direct, vmcb, control.pause_filter_count);
	}
}

static __always_inline void read_vmx_exit(struct kvm_vcpu *vcpu, struct guest_exit *exit, bool details)
{
	bool direct = options.direct_reads;

	if (bpf_core_field_exists(struct vcpu_vmx, vt))
		exit->code = READ(direct, (struct vcpu_vmx *)vcpu, vt.exit_reason.full);
	else
		exit->code = READ(direct, (struct vcpu_vmx___before_6_15 *)vcpu, exit_reason.full);
	exit->pause = (u16)exit->code == EXIT_REASON_PAUSE_INSTRUCTION;
	exit->interrupt = (u16)exit->code == EXIT_REASON_EXTERNAL_INTERRUPT;
	if (exit->pause) {
		exit->mode = UNSPIN_MODE_KERNEL; /* Intel's PLE regards CPL 0 only (SDM 3C, "PAUSE-loop exiting") */
		if (details)
			exit->window = READ(direct, (struct vcpu_vmx *)vcpu, ple_window);
	}
}

/*
 * Reads the exit that the current vCPU has just made; fields that cannot be read are unknown. For kvm_exit programs.
 * `details` must be a compile-time constant, so that the verifier drops the reads that are not wanted.
 */
static __always_inline void read_exit(struct kvm_vcpu *vcpu, u32 isa, struct guest_exit *exit, bool details)
{
	exit->code = UNSPIN_UNKNOWN;
	exit->pause = 0;
	exit->interrupt = 0;
	exit->mode = UNSPIN_MODE_UNKNOWN;
	exit->window = UNSPIN_UNKNOWN_HALF;
	exit->rip = UNSPIN_UNKNOWN;
	if (isa == KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_svm))
		read_svm_exit(vcpu, exit, details);
	else if (isa == KVM_ISA_VMX && bpf_core_type_exists(struct vcpu_vmx))
		read_vmx_exit(vcpu, exit, details);
}

#endif
