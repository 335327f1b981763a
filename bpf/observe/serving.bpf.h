/* SPDX-License-Identifier: GPL-2.0-only */
/* serving.bpf.h - the slot of the thread that enters or leaves a guest. */
#ifndef UNSPIN_BPF_OBSERVE_SERVING_H
#define UNSPIN_BPF_OBSERVE_SERVING_H

#include "threads.bpf.h"

/* What thread_serving() does for a thread that is new or has turned to another vCPU, and when a VM was destroyed. */
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
		end_thread(slot, now_ns); /* this thread has turned to another vCPU */
	return adopt(task, (u64)vcpu, vcpu->vcpu_id, vm, now_ns);
}

/*
 * The slot of the current task, which is inside KVM for `vcpu`. Interrupts are off, so no other task runs here. That the
 * slot is this task's need not be asked: sched_switch, attached before, has written whose slot is running here, and a vCPU
 * is served by one thread at a time.
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
