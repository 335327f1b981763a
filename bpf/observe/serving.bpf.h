/* SPDX-License-Identifier: GPL-2.0-only */
/* serving.bpf.h - finds, or makes, the slot of the thread that enters or leaves a guest. */
#ifndef UNSPIN_BPF_OBSERVE_SERVING_H
#define UNSPIN_BPF_OBSERVE_SERVING_H

#include "threads.bpf.h"

/*
 * The slow path of thread_serving(): a new thread, a thread that now serves another vCPU, or the first exit after a VM
 * was destroyed.
 */
static __noinline struct unspin_observed_thread *refresh_serving(struct kvm_vcpu *vcpu, u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 *slot = bpf_task_storage_get(&slot_of_task, task, NULL, 0);
	struct unspin_observed_thread *thread = thread_in(slot);
	u64 generation = globals.vm_generation;
	u32 vm;

	if (thread && thread->vcpu_pointer == (u64)vcpu && thread->vm_generation == generation)
		return thread;
	vm = vm_number((u64)vcpu->kvm);
	if (vm == UNSPIN_NO_VM)
		return NULL;
	check_again(thread);
	check_again(slot);
	if (thread && thread->vcpu_pointer == (u64)vcpu && thread->counters.vm == vm) {
		thread->vm_generation = generation;
		return thread;
	}
	if (slot)
		end_thread(slot, now_ns); /* this thread now serves another vCPU */
	return adopt(task, (u64)vcpu, vcpu->vcpu_id, vm, now_ns);
}

/*
 * The slot of the current task, which is inside KVM_RUN for `vcpu`; NULL if no slot or VM number is left. For kvm_entry
 * and kvm_exit: interrupts are off, so no other task runs on this CPU. The slot's task_pointer is not compared:
 * sched_switch, which was attached before, has written into `running` whose slot is on this CPU, and one thread at a
 * time serves a vCPU.
 */
static __always_inline struct unspin_observed_thread *thread_serving(struct kvm_vcpu *vcpu, u64 now_ns)
{
	u32 index, here = *running_here();
	struct unspin_observed_thread *thread;

	if (here >= RUNNING_SLOTS) {
		index = here - RUNNING_SLOTS;
		thread = bpf_map_lookup_elem(&threads, &index);
		if (thread && thread->vcpu_pointer == (u64)vcpu && thread->vm_generation == globals.vm_generation)
			return thread;
	}
	return refresh_serving(vcpu, now_ns);
}

#endif
