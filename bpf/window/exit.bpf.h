/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exit.bpf.h - reads from KVM's structures whether an exit ends a wait, and the pause-loop window in force. Reads that
 * fail give 0.
 */
#ifndef UNSPIN_BPF_WINDOW_EXIT_H
#define UNSPIN_BPF_WINDOW_EXIT_H

#include "../common/exits.bpf.h"
#include "state.bpf.h"

#include "../../abi/guest/pv_page.h"

struct guest_exit {
	u32 wait; /* enum unspin_wait_exit */
	u32 window;
};

static __always_inline u32 wait_of_call(u64 number)
{
	if (number == UNSPIN_HYPERCALL_HELP)
		return UNSPIN_WAIT_EXIT_HELP;
	return number == KVM_HC_SCHED_YIELD ? UNSPIN_WAIT_EXIT_YIELD : UNSPIN_WAIT_EXIT_NONE;
}

/* A hypercall from the guest's user mode is ignored: KVM refuses it, and it is no wait of the guest's kernel. */
static __always_inline void read_svm(struct kvm_vcpu *vcpu, struct guest_exit *exit)
{
	struct vmcb *vmcb = vmcb_of(vcpu);
	struct exit_code of = svm_exit_code(vmcb);

	exit->window = of.window;
	if (of.code == SVM_EXIT_PAUSE)
		exit->wait = UNSPIN_WAIT_EXIT_PAUSE_LOOP;
	else if (of.code == SVM_EXIT_HLT)
		exit->wait = UNSPIN_WAIT_EXIT_HALT;
	else if (of.code == SVM_EXIT_VMMCALL && BPF_CORE_READ(vmcb, save.cpl) < USER_CPL)
		exit->wait = wait_of_call(BPF_CORE_READ(vmcb, save.rax));
}

/* The guest's mode is in the VMCS, which a BPF program cannot read: hypercalls of user mode count as the kernel's. */
static __always_inline void read_vmx(struct kvm_vcpu *vcpu, struct guest_exit *exit)
{
	struct exit_code of = vmx_exit_code(vcpu);

	exit->window = of.window;
	if (of.code == EXIT_REASON_PAUSE_INSTRUCTION)
		exit->wait = UNSPIN_WAIT_EXIT_PAUSE_LOOP;
	else if (of.code == EXIT_REASON_HLT)
		exit->wait = UNSPIN_WAIT_EXIT_HALT;
	else if (of.code == EXIT_REASON_VMCALL)
		exit->wait = wait_of_call(BPF_CORE_READ(vcpu, arch.regs[0]));
}

static __always_inline void read_exit(struct kvm_vcpu *vcpu, u32 isa, struct guest_exit *exit)
{
	*exit = (struct guest_exit){};
	if (is_svm(isa))
		read_svm(vcpu, exit);
	else if (is_vmx(isa))
		read_vmx(vcpu, exit);
}

/* Whether the current vCPU made its hypercall in user mode. False on Intel, where the mode cannot be read. */
static __always_inline bool is_in_user_mode(u64 vcpu)
{
	struct vmcb *vmcb;

	if (!bpf_core_type_exists(struct vcpu_svm))
		return 0;
	vmcb = BPF_CORE_READ((struct vcpu_svm *)vcpu, vmcb);
	return BPF_CORE_READ(vmcb, save.cpl) >= USER_CPL;
}

#endif
