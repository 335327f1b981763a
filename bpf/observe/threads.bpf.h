/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads.bpf.h - which vCPU a thread serves, and how long the thread runs, waits for a CPU and sleeps.
 *
 * A vCPU thread is found through KVM only: it is the task that enters or leaves a guest. It keeps its slot of `threads`
 * until it ends or serves another vCPU; user space then empties the slot and returns it to `free_slots`.
 */
#ifndef UNSPIN_BPF_OBSERVE_THREADS_H
#define UNSPIN_BPF_OBSERVE_THREADS_H

#include "maps.bpf.h"

#define barrier() asm volatile("" ::: "memory")
/* Makes the compiler test the pointer again here: the verifier cannot follow an earlier test whose result was kept. */
#define check_again(pointer) asm volatile("" : "+r"(pointer))

/* The slot at *slot, a value of slot_of_task; NULL if there is none. */
static __always_inline struct unspin_observed_thread *thread_in(const u32 *slot)
{
	u32 index;

	if (!slot || !*slot)
		return NULL;
	index = *slot - 1;
	/* In bounds: the array map refuses an index beyond its end. */
	return bpf_map_lookup_elem(&threads, &index);
}

/* The slot of a task; NULL if it is no vCPU thread. */
static __always_inline struct unspin_observed_thread *thread_of(struct task_struct *task)
{
	if (!task->bpf_storage) /* most tasks have none, and the call costs some 35 instructions */
		return NULL;
	return thread_in(bpf_task_storage_get(&slot_of_task, task, NULL, 0));
}

/* The same for the task that runs on this CPU, in most cases without a lookup by task. */
static __always_inline struct unspin_observed_thread *thread_of_running(struct task_struct *task)
{
	u32 index, here = *running_here();
	struct unspin_observed_thread *thread;

	if (here == RUNNING_NO_VCPU)
		return NULL;
	if (here >= RUNNING_SLOTS) {
		index = here - RUNNING_SLOTS;
		thread = bpf_map_lookup_elem(&threads, &index);
		if (thread && thread->task_pointer == (u64)task)
			return thread;
	}
	return thread_of(task);
}

/*
 * Ends the thread's state at now_ns, adds its time to that state's counter, and begins `state`. The caller has
 * preemption off.
 */
static __always_inline void change_state(struct unspin_observed_thread *thread, u64 now_ns, u32 state)
{
	volatile u32 *sequence = &thread->sequence;
	/* Clocks of two CPUs may differ by a few ns: a time that would be negative counts as 0. */
	u64 spent_ns = now_ns > thread->since_ns ? now_ns - thread->since_ns : 0;

	*sequence += 1;
	barrier(); /* x86 does not reorder stores: a barrier for the compiler is enough */
	if (thread->state == UNSPIN_THREAD_RUNNING)
		thread->counters.running_ns += spent_ns;
	else if (thread->state == UNSPIN_THREAD_RUNNABLE)
		thread->counters.runnable_ns += spent_ns;
	else if (thread->state == UNSPIN_THREAD_ASLEEP)
		thread->counters.asleep_ns += spent_ns;
	thread->since_ns += spent_ns;
	thread->state = state;
	barrier();
	*sequence += 1;
}

/*
 * Gives VM `kvm`, which is in globals.vm_to_number, the next number, and returns it; NULL when the table is full. Every
 * CPU that finds the VM in that map calls this, so no CPU waits for the one that inserted it. A CPU that comes second finds
 * the number and changes nothing; interrupts are off, so the VM cannot be destroyed meanwhile.
 */
static __always_inline u32 *number_vm(u64 kvm)
{
	u32 next = globals.vms, *number;

	bpf_map_update_elem(&vms, &kvm, &next,
			    BPF_NOEXIST); /* one of several CPUs succeeds; the others find its number */
	number = bpf_map_lookup_elem(&vms, &kvm);
	if (number)
		__sync_val_compare_and_swap(&globals.vms, (u64)*number, *number + 1ULL);
	__sync_val_compare_and_swap(&globals.vm_to_number, kvm, 0);
	return number;
}

#define VMS_AT_ONCE 16 /* that many VMs may be numbered at the same time; an exit of one more is not observed */

/* The number of VM `kvm`: 0, 1, 2, in order of appearance, without gaps. UNSPIN_NO_VM when the table is full. */
static __always_inline u32 vm_number(u64 kvm)
{
	u32 *number = bpf_map_lookup_elem(&vms, &kvm);
	u64 numbered;

	for (int i = 0; !number && i < VMS_AT_ONCE; i++) {
		numbered = __sync_val_compare_and_swap(&globals.vm_to_number, 0, kvm) ?: kvm;
		number = number_vm(numbered);
		if (numbered != kvm)
			number = NULL;
	}
	return number ? *number : UNSPIN_NO_VM;
}

/* Ends the thread's last state: its slot does not change any more, and user space may empty it. */
static __always_inline void end_thread(u32 *slot, u64 now_ns)
{
	struct unspin_observed_thread *thread = thread_in(slot);

	if (!thread)
		return;
	thread->task_pointer = 0;
	*slot = 0; /* before the state: once it has ended, the slot may become another thread's */
	barrier();
	bpf_map_delete_elem(&vcpu_of_thread, &thread->counters.thread);
	change_state(thread, now_ns, UNSPIN_THREAD_ENDED);
	__sync_fetch_and_add(&globals.slots_ended, 1);
}

/*
 * Gives the current task a slot; NULL if none is left. It serves vCPU `number` of VM `vm`; `vcpu` is the address of its
 * struct kvm_vcpu, which is compared only. The caller has preemption off.
 */
static __always_inline struct unspin_observed_thread *adopt(struct task_struct *task, u64 vcpu, u32 number, u32 vm,
							    u64 now_ns)
{
	struct unspin_observed_thread *thread;
	u32 index, *slot = bpf_task_storage_get(&slot_of_task, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!slot || bpf_map_pop_elem(&free_slots, &index))
		return NULL;
	thread = bpf_map_lookup_elem(&threads, &index);
	if (!thread)
		return NULL;
	__sync_fetch_and_add(&globals.slots_taken, 1);
	thread->counters.vm = vm;
	thread->counters.vcpu = number;
	thread->counters.thread = task->pid;
	thread->counters.process = task->tgid;
	thread->task_pointer = (u64)task;
	thread->vcpu_pointer = vcpu;
	thread->vm_generation = globals.vm_generation;
	thread->first_seen_ns = now_ns;
	thread->since_ns = now_ns;
	barrier(); /* `state` last: a reader that sees it sees all fields above */
	thread->state = UNSPIN_THREAD_RUNNING;
	/* Fails only when the table is full: then events name the thread without its vCPU. */
	bpf_map_update_elem(&vcpu_of_thread, &thread->counters.thread, &thread->counters.vcpu, 0);
	*slot = index + 1;
	*running_here() = index + RUNNING_SLOTS;
	return thread;
}

/* A VM is destroyed: its address may be reused, so its number is removed and every thread looks up its VM again. */
static __always_inline void forget_vm(u64 kvm)
{
	bpf_map_delete_elem(&vms, &kvm);
	__sync_fetch_and_add(&globals.vm_generation, 1);
}

#endif
