/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kvm.bpf.h - where KVM is listened to: a vCPU enters its guest, a guest calls, a VM goes.
 */
#ifndef UNSPIN_BPF_SCHEDULER_KVM_H
#define UNSPIN_BPF_SCHEDULER_KVM_H

#include "only_vms/threads.bpf.h"
#include "slice_end.bpf.h"
#include "guest/notify.bpf.h"
#include "guest/vmx_interrupts.bpf.h"
#include "yield/spin.bpf.h"

SEC("tp_btf/kvm_entry")
int BPF_PROG(on_kvm_entry, struct kvm_vcpu *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task = context_of(p);

	if (!task || !vcpu)
		return 0;
	if (task->vcpu != (u64)vcpu || task->vm_generation != destroyed) {
		learn_vcpu(p, task, vcpu);
		task->disclosure = disclosure_of(task);
		join_vm(p, task, vcpu);
	}
	if (options.only_vms)
		announce(p, task, UNSPIN_STEER_THREAD_VCPU);
	if (options.chooses)
		count_entry(p, task);
	if (task->leaves) {
		task->leaves = 0;
		end_slice(p);
		return 0;
	}
	task->names = 0;
	if (is_notified(task)) {
		if (task->acknowledge)
			acknowledge(p, task);
		publish(p, task, 0, task->overloaded);
	}
	acknowledge_counts(p, vcpu);
	if (task->asks) {
		task->asks = 0;
		if (help(p, task))
			return 0;
	}
	if (task->on_spin) {
		if (options.chooses && spin(p, task))
			return 0;
		sample_from_now(task);
	}
	if (task->borrow_kind == UNSPIN_BORROWS_NOTHING) {
		task->give_back = 0;
		if (task->borrowed_is_set)
			set_borrowed_word(p, task, 0);
		return 0;
	}
	if (task->watched_ns != task->borrowed_since_ns) {
		audit_count(borrowed);
		task->give_back = 0;
		if (is_notified(task) && !task->silent && !task->borrowed_is_set)
			set_borrowed_word(p, task, 1);
		watch(task);
	} else if (task->give_back ||
		   (!is_notified(task) && !task->silent && done_with_it(p, task, bpf_ktime_get_ns()))) {
		task->give_back = 0;
		task->borrowed_is_set = 0; /* a guest clears the word before it gives back (abi/guest/pv_page.h) */
		count(unspin_steer_given_back, 1);
		leave(p, task);
	}
	return 0;
}

/* Fires for numbers that KVM does not implement, too. Preemptible: it only sets marks for kvm_entry, which is not. */
SEC("tp_btf/kvm_hypercall")
int BPF_PROG(on_kvm_hypercall, unsigned long number, unsigned long argument, unsigned long a1, unsigned long a2,
	     unsigned long a3)
{
	struct task_context *task;
	u64 had;

	if (options.chooses && (u32)number == KVM_HC_SEND_IPI) {
		announce_multicast(a3);
		return 0;
	}
	if ((number < UNSPIN_HYPERCALL_REGISTER_PV_PAGE || number > UNSPIN_HYPERCALL_HELP) &&
	    number != UNSPIN_HYPERCALL_REGISTER_COUNTS && number != KVM_HC_SCHED_YIELD)
		return 0;
	task = context_of(bpf_get_current_task_btf());
	if (!task || !task->vcpu || task->vm_generation != destroyed)
		return 0;
	/* kvm_sched_yield() (arch/x86/kvm/x86.c, Linux 7.2) calls yield_to() for the vCPU that it names, if at all. */
	if (number == KVM_HC_SCHED_YIELD) {
		task->names = 1;
		return 0;
	}
	if (number == UNSPIN_HYPERCALL_GIVE_BACK) {
		if (task->borrow_kind == UNSPIN_BORROWS_NOTHING)
			audit_count(idle_calls);
		task->give_back = 1;
		return 0;
	}
	/* Not from processes in the guest's user mode. */
	if (mode_of(task) == UNSPIN_MODE_USER)
		return 0;
	if (number == UNSPIN_HYPERCALL_HELP) {
		task->asks = 1;
		return 0;
	}
	if (number == UNSPIN_HYPERCALL_REGISTER_COUNTS) {
		count(unspin_steer_counts, learn_counts(task->vcpu, argument));
		return 0;
	}
	/* Inside one page and aligned, or it is no pv page. */
	if (argument % PAGE_BYTES > PAGE_BYTES - sizeof(struct unspin_pv_page) || argument % sizeof(u32)) {
		audit_count(bad_addresses);
		return 0;
	}
	had = task->pv_page;
	task->pv_page = host_address(task->vcpu, argument);
	find_offer(task);
	task->published = 0;
	if (!task->pv_page)
		audit_count(bad_addresses);
	else if (!had)
		count(unspin_steer_pv_pages, 1);
	task->acknowledge = 1;
	return 0;
}

SEC("fentry/kvm_destroy_vm")
int BPF_PROG(on_destroy_vm, struct kvm *kvm)
{
	u64 vm = (u64)kvm;

	bpf_map_delete_elem(&vms, &vm);
	__sync_fetch_and_add(&destroyed, 1);
	return 0;
}

#endif
