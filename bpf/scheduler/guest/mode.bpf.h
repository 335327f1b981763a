/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mode.bpf.h - the fact `mode`: whether a vCPU's guest was in user or kernel mode at its last exit.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_MODE_H
#define UNSPIN_BPF_SCHEDULER_GUEST_MODE_H

#include "../../common/exits.bpf.h"
#include "../state.bpf.h"

/*
 * Of a guest under VMX, whose mode is in the VMCS: known where the exit tells it, which only privileged instructions and pause-loop
 * exits do (in kernel mode only: SDM vol. 3C, 25.1.3), and where KVM has read the privilege level since (vmx_get_cpl(),
 * arch/x86/kvm/vmx/vmx.c, Linux 7.2): before each hypercall, and after interrupts by vmx_interrupts.bpf.h. All reads are safe ones.
 */
static __always_inline u32 vmx_mode(struct kvm_vcpu *vcpu)
{
	const struct vcpu_vmx *vmx = (struct vcpu_vmx *)vcpu;

	switch (vmx_exit_code(vcpu).code) {
	case EXIT_REASON_HLT:
	case EXIT_REASON_MSR_READ:
	case EXIT_REASON_MSR_WRITE:
	case EXIT_REASON_PAUSE_INSTRUCTION:
		return UNSPIN_MODE_KERNEL;
	}
	if (!vmx_has_read_segments(vcpu) || !(BPF_CORE_READ(vmx, segment_cache.bitmask) & VMX_SEGMENT_CACHE_SS_AR))
		return UNSPIN_MODE_UNKNOWN;
	return VMX_AR_DPL(BPF_CORE_READ(vmx, segment_cache.seg[VCPU_SREG_SS].ar)) < USER_CPL ? UNSPIN_MODE_KERNEL
											     : UNSPIN_MODE_USER;
}

/* At its last exit, as far as it can be read. All reads are safe ones. */
static __always_inline u32 mode_of(const struct task_context *task)
{
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)task->vcpu;

	if (!vcpu || task->vm_generation != destroyed || is_protected(vcpu))
		return UNSPIN_MODE_UNKNOWN;
	if (bpf_core_type_exists(struct vcpu_svm))
		return BPF_CORE_READ(vmcb_of(vcpu), save.cpl) < USER_CPL ? UNSPIN_MODE_KERNEL : UNSPIN_MODE_USER;
	return bpf_core_type_exists(struct vcpu_vmx) ? vmx_mode(vcpu) : UNSPIN_MODE_UNKNOWN;
}

/*
 * What is known of the mode in which it left its CPU. Under VMX KVM reads it when the vCPU's thread is preempted, after ops.stopping
 * (kvm_arch_vcpu_put(), arch/x86/kvm/x86.c, Linux 7.2), and keeps it for kvm_vcpu_on_spin(); `preempted` is false before that.
 * All reads are safe ones.
 */
static __always_inline struct unspin_fact mode_left_in(const struct task_context *task)
{
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)task->vcpu;

	if (bpf_core_type_exists(struct vcpu_svm) || !bpf_core_type_exists(struct vcpu_vmx) || fact_known(task->mode) ||
	    task->on_cpu || !vcpu || task->vm_generation != destroyed || is_protected(vcpu) ||
	    !BPF_CORE_READ(vcpu, preempted))
		return task->mode;
	return (struct unspin_fact){
		BPF_CORE_READ(vcpu, arch.preempted_in_kernel) ? UNSPIN_MODE_KERNEL : UNSPIN_MODE_USER, 0};
}

#endif
