/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads.bpf.h - which vCPU a thread serves, and how long it runs, waits and sleeps.
 *
 * A vCPU thread is found through KVM only: it is the task that enters or leaves a guest. It gets a slot of `threads` for
 * good; user space empties and returns slots of threads that ended.
 */
#ifndef UNSPIN_BPF_THREADS_H
#define UNSPIN_BPF_THREADS_H

#include "kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../abi/observe.h"

#define barrier() asm volatile("" ::: "memory")
/* Makes the compiler test the pointer itself again instead of a remembered result, which the verifier cannot follow. */
#define check_again(pointer) asm volatile("" : "+r"(pointer))

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader, as those of free_slots and vcpu_of_thread */
	__type(key, u32);
	__type(value, struct unspin_observed_thread);
} threads SEC(".maps");

/* Slots that nobody uses; filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(key_size, 0);
	__uint(value_size, sizeof(u32));
} free_slots SEC(".maps");

/* A task's slot, plus 1. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} slot_of_task SEC(".maps");

/* Thread id -> KVM's number of the vCPU that it serves. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} vcpu_of_thread SEC(".maps");

/* struct kvm * -> the VM's number plus 1; 0 while another CPU is giving it one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} vms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes; set by the loader */
} events SEC(".maps");

const volatile struct unspin_observe_options options;
struct unspin_observe_globals globals;

/* Constant for the verifier: what nobody wants costs nothing. */
static __always_inline bool wants(u32 kind)
{
	return options.event_mask & (1u << kind);
}

/* Writes an event about `thread` if anybody wants it, or counts it as lost. */
static __always_inline void emit(const struct unspin_observed_thread *thread, u32 kind, u64 now_ns, u64 argument0,
				 u64 argument1, u64 argument2)
{
	struct unspin_event *event;

	if (!wants(kind))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		/* In bounds: every caller's kind is a constant below UNSPIN_EVENT_KINDS. */
		__sync_fetch_and_add(&globals.lost_events[kind], 1);
		return;
	}
	event->time_ns = now_ns;
	event->kind = kind;
	event->vm = thread->counters.vm;
	event->thread = thread->counters.thread;
	event->vcpu = thread->counters.vcpu;
	event->cpu = bpf_get_smp_processor_id();
	event->argument0 = argument0;
	event->argument1 = argument1;
	event->argument2 = argument2;
	/* The reader polls: waking it would add switches to the very trace that is being taken. */
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

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
	return thread_in(bpf_task_storage_get(&slot_of_task, task, NULL, 0));
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

/* The number of that VM, in order of appearance; UNSPIN_NO_VM when the table is full or another CPU is giving it. */
static __always_inline u32 vm_number(u64 kvm)
{
	u32 none = 0, *number = bpf_map_lookup_elem(&vms, &kvm);

	if (!number) {
		/* Only the CPU whose insertion succeeds draws a number, so there are no gaps. */
		if (bpf_map_update_elem(&vms, &kvm, &none, BPF_NOEXIST) == 0) {
			number = bpf_map_lookup_elem(&vms, &kvm);
			if (number)
				*number = __sync_fetch_and_add(&globals.vms, 1) + 1;
		} else {
			number = bpf_map_lookup_elem(&vms, &kvm);
		}
	}
	return number && *number ? *number - 1 : UNSPIN_NO_VM;
}

/* The thread's last state: nothing of it changes any more, and user space may empty its slot. */
static __always_inline void end_thread(u32 *slot, u64 now_ns)
{
	struct unspin_observed_thread *thread = thread_in(slot);

	if (!thread)
		return;
	*slot = 0; /* first: nobody finds the slot when it is another thread's */
	barrier();
	bpf_map_delete_elem(&vcpu_of_thread, &thread->counters.thread);
	change_state(thread, now_ns, UNSPIN_THREAD_ENDED);
}

/* Gives the current task, which is inside KVM for `vcpu`, its slot; NULL if there is none left. Interrupts are off. */
static __always_inline struct unspin_observed_thread *adopt(struct task_struct *task, struct kvm_vcpu *vcpu, u32 vm,
							    u64 now_ns)
{
	struct unspin_observed_thread *thread;
	u32 index, *slot = bpf_task_storage_get(&slot_of_task, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!slot || bpf_map_pop_elem(&free_slots, &index))
		return NULL;
	thread = bpf_map_lookup_elem(&threads, &index);
	if (!thread)
		return NULL;
	thread->counters.vm = vm;
	thread->counters.vcpu = vcpu->vcpu_id;
	thread->counters.thread = task->pid;
	thread->counters.process = task->tgid;
	thread->vcpu_pointer = (u64)vcpu;
	thread->vm_generation = globals.vm_generation;
	thread->first_seen_ns = now_ns;
	thread->since_ns = now_ns;
	barrier(); /* a reader that sees a state sees the rest */
	thread->state = UNSPIN_THREAD_RUNNING;
	/* Fails only when the table is full: then events name the thread and not its vCPU. */
	bpf_map_update_elem(&vcpu_of_thread, &thread->counters.thread, &thread->counters.vcpu, 0);
	*slot = index + 1;
	return thread;
}

/* The slot of the current task, which is inside KVM for `vcpu`. Interrupts are off, so no other task runs here. */
static __always_inline struct unspin_observed_thread *thread_serving(struct kvm_vcpu *vcpu, u64 now_ns)
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
	return adopt(task, vcpu, vm, now_ns);
}

#endif
