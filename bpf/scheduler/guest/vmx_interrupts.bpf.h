/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmx_interrupts.bpf.h - has KVM read in which mode an interrupt stopped a guest under VMX, for vmx_mode().
 *
 * The privilege level is in the VMCS, and no BPF program reads that. KVM reads it for perf, and keeps it, while it handles an
 * interrupt for which the guest left (kvm_guest_state(), virt/kvm/kvm_main.c; kvm_arch_vcpu_in_kernel(), arch/x86/kvm/x86.c). perf
 * wants to know before it walks the kernel's stack (perf_callchain_kernel(), arch/x86/events/core.c), which it does for a program that
 * asks for the stack. All of Linux 7.2. Timers of slices and polls run at the end of the same interrupt.
 *
 * Loaded on Intel only.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_VMX_INTERRUPTS_H
#define UNSPIN_BPF_SCHEDULER_GUEST_VMX_INTERRUPTS_H

#include "../state.bpf.h"

/* An interrupt has come. Where it stopped the host's kernel instead, one frame of its stack is walked. */
static __always_inline void have_mode_read(void *context)
{
	struct task_context *task = context_of(bpf_get_current_task_btf());
	u64 frame;

	if (task && task->vcpu && task->steered && task->choice.policies)
		bpf_get_stack(context, &frame, sizeof(frame), 0);
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_vmx_timer)
{
	have_mode_read(ctx);
	return 0;
}

/* Another CPU wants this one to look again. */
SEC("tp_btf/reschedule_entry")
int BPF_PROG(on_vmx_reschedule)
{
	have_mode_read(ctx);
	return 0;
}

#endif
