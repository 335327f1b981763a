/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads.bpf.h - which vCPU a thread serves, and how long it runs, waits and sleeps.
 *
 * A vCPU thread is found through KVM only: it is the task that enters or leaves a guest. It gets a slot of `threads` for
 * good; user space empties and returns slots of threads that ended.
 */
#ifndef UNSPIN_BPF_OBSERVE_THREADS_H
#define UNSPIN_BPF_OBSERVE_THREADS_H

#include "maps.bpf.h"

#define barrier() asm volatile("" ::: "memory")
/* Makes the compiler test the pointer itself again instead of a remembered result, which the verifier cannot follow. */
#define check_again(pointer) asm volatile("" : "+r"(pointer))

/* The slot that slot_of_task says; NULL if it says none. */
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
	if (!task->bpf_storage) /* most tasks have none, and asking costs some 35 instructions */
		return NULL;
	return thread_in(bpf_task_storage_get(&slot_of_task, task, NULL, 0));
}

/* The same for the task that runs on this CPU, mostly without a lookup by task. */
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

/* Ends the thread's state at now_ns, adds its time where it belongs, and begins `state`. */
static __always_inline void change_state(struct unspin_observed_thread *thread, u64 now_ns, u32 state)
{
	volatile u32 *sequence = &thread->sequence;
	/* Clocks of two CPUs may differ by a few ns: such a step back counts as no time. */
	u64 spent_ns = now_ns > thread->since_ns ? now_ns - thread->since_ns : 0;

	*sequence += 1;
	barrier(); /* x86 keeps stores in order: the compiler alone must be told */
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
 * Gives the VM in `globals.vm_to_number` the next number, on whichever CPU: nobody waits for the one that entered it there. One
 * that comes late finds the entry and changes nothing; interrupts are off, so it is not as late as the VM's end. NULL when the
 * table is full.
 */
static __always_inline u32 *number_vm(u64 kvm)
{
	u32 next = globals.vms, *number;

	bpf_map_update_elem(&vms, &kvm, &next, BPF_NOEXIST); /* of several CPUs one; the others find its number */
	number = bpf_map_lookup_elem(&vms, &kvm);
	if (number)
		__sync_val_compare_and_swap(&globals.vms, (u64)*number, *number + 1ULL);
	__sync_val_compare_and_swap(&globals.vm_to_number, kvm, 0);
	return number;
}

#define VMS_AT_ONCE 16 /* numbered at the same time; an exit of one more goes unobserved */

/* The number of that VM: 0, 1, 2, in order of appearance, none left out. UNSPIN_NO_VM when the table is full. */
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

/* The thread's last state: nothing of it changes any more, and user space may empty its slot. */
static __always_inline void end_thread(u32 *slot, u64 now_ns)
{
	struct unspin_observed_thread *thread = thread_in(slot);

	if (!thread)
		return;
	thread->task_pointer = 0;
	*slot = 0; /* first: nobody finds the slot when it is another thread's */
	barrier();
	bpf_map_delete_elem(&vcpu_of_thread, &thread->counters.thread);
	change_state(thread, now_ns, UNSPIN_THREAD_ENDED);
	__sync_fetch_and_add(&globals.slots_ended, 1);
}

/*
 * Gives the current task, which serves the vCPU of that number, its slot; NULL if there is none left. `vcpu` tells it from
 * other vCPUs. Preemption is off.
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
	barrier(); /* a reader that sees a state sees the rest */
	thread->state = UNSPIN_THREAD_RUNNING;
	/* Fails only when the table is full: then events name the thread and not its vCPU. */
	bpf_map_update_elem(&vcpu_of_thread, &thread->counters.thread, &thread->counters.vcpu, 0);
	*slot = index + 1;
	*running_here() = index + RUNNING_SLOTS;
	return thread;
}

/* The address may belong to another VM next time: forget its number, and make every thread look again. */
static __always_inline void forget_vm(u64 kvm)
{
	bpf_map_delete_elem(&vms, &kvm);
	__sync_fetch_and_add(&globals.vm_generation, 1);
}

#endif
