/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mode.bpf.h - the fact `mode`: whether a vCPU's guest was in user or kernel mode at its last exit.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_MODE_H
#define UNSPIN_BPF_SCHEDULER_GUEST_MODE_H

#include "../../common/exits.bpf.h"
#include "../state.bpf.h"

/* Of AMD's guests only, unknown of others: on VMX only hardware reads the field. All reads are safe ones. */
static __always_inline u32 mode_of(const struct task_context *task)
{
	struct vcpu_svm *vcpu = (struct vcpu_svm *)task->vcpu;
	struct vmcb *vmcb;

	if (!vcpu || task->vm_generation != destroyed || !bpf_core_type_exists(struct vcpu_svm) ||
	    is_protected((struct kvm_vcpu *)vcpu))
		return UNSPIN_MODE_UNKNOWN;
	vmcb = BPF_CORE_READ(vcpu, vmcb);
	return BPF_CORE_READ(vmcb, save.cpl) < USER_CPL ? UNSPIN_MODE_KERNEL : UNSPIN_MODE_USER;
}

#endif
