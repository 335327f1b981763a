/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * state.bpf.h - what is kept of each vCPU's thread and of each VM, and which thread serves which vCPU.
 *
 * A thread's counters are in its task's storage, so there is no table of threads with a size to choose, and they are freed with the
 * thread. Its counts are added to its VM's then.
 */
#ifndef UNSPIN_BPF_WATCH_STATE_H
#define UNSPIN_BPF_WATCH_STATE_H

#include "../common/exits.bpf.h"
#include "../common/reads.bpf.h"

#include <bpf/bpf_tracing.h>

#include "../../abi/bpf/watch.h"
#include "../../policy/auto/useful_time.h"

/* include/linux/sched.h, include/linux/sched/types.h. CONFIG_SCHED_INFO, which KVM selects (arch/x86/kvm/Kconfig). */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_entity___watch {
	u64 sum_exec_runtime;
};
struct sched_info___watch {
	unsigned long long run_delay;
};
struct task_struct___watch {
	int pid;
	int tgid;
	struct sched_entity___watch se;
	struct sched_info___watch sched_info;
	unsigned long nivcsw;
};
#pragma clang attribute pop

/* Counts that the kernel's scheduler keeps of a task. */
struct kernel_counts {
	u64 run_ns;
	u64 wait_ns;
	u64 switches; /* involuntary ones: it left its CPU while runnable */
};

/*
 * One thread. Written by itself, with interrupts off, and when it ends. crates/agent/src/watch/pretend.rs relies on the
 * offsets of kvm_pointer and vm.
 */
struct watched_vcpu {
	u64 vcpu_pointer; /* struct kvm_vcpu *, compared only */
	u64 kvm_pointer;  /* struct kvm *, likewise: its VM in `vms` */
	u64 vm;		  /* the VM's number; 0: the thread serves no vCPU */
	u64 generation;	  /* of the globals when the VM was last looked up */
	u64 since_ns;
	u64 halted_since_ns;
	u64 paused_since_ns;  /* time of the pause-loop exit that is being handled; 0: none */
	u64 switches_at_exit; /* the kernel's count at the last exit */
	u64 wait_at_exit_ns;
	u32 vcpu;
	u32 yielded;		     /* 1: a directed yield succeeded since that exit */
	struct kernel_counts before; /* the kernel's counts when it was first seen */
	struct unspin_spin_meter meter;
	struct unspin_useful_time time;
	u64 halted_ns;
	u64 handling_ns;
	u64 exits;
	u64 yields_tried;
	u64 yields_succeeded;
	u64 slices_lost;
};

_Static_assert(__builtin_offsetof(struct watched_vcpu, kvm_pointer) == 8 &&
		       __builtin_offsetof(struct watched_vcpu, vm) == 16,
	       "pretend.rs writes them");
_Static_assert(sizeof(((struct unspin_watch_vm *)0)->places) == sizeof(struct unspin_spin_places),
	       "a VM has room for its places");

/* Changed by all vCPUs of the VM: if two add a place at the same time, one of the two is lost. */
static __always_inline struct unspin_spin_places *places_of(struct unspin_watch_vm *vm)
{
	return (void *)vm->places;
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct watched_vcpu);
} vcpus SEC(".maps");

/* By struct kvm *. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* the loader sets the real size, by the host's limit on processes */
	__type(key, u64);
	__type(value, struct unspin_watch_vm);
} vms SEC(".maps");

struct unspin_watch_globals globals;

/* 1: kernel memory is read by guarded loads, 0: by helper calls. Set by the loader. */
const volatile u32 direct_reads = 0;

/* The kernel's counts of a task that the verifier trusts: its fields are loaded without a call. */
static __always_inline struct kernel_counts counts_of(struct task_struct *task)
{
	struct task_struct___watch *p = (void *)task;

	return (struct kernel_counts){p->se.sum_exec_runtime, p->sched_info.run_delay, p->nivcsw};
}

/* Writes the thread's counters up to now; `task` is the thread. */
static __always_inline void sum_up(const struct watched_vcpu *watched, struct task_struct *task,
				   struct unspin_watch_counters *counters)
{
	struct kernel_counts now = counts_of(task);

	*counters = (struct unspin_watch_counters){
		.run_ns = now.run_ns - watched->before.run_ns,
		.wait_ns = now.wait_ns - watched->before.wait_ns,
		.halted_ns = watched->halted_ns,
		.guest_ns = watched->time.guest_ns,
		.spin_ns = watched->time.spin_ns,
		.handling_ns = watched->handling_ns,
		.exits = watched->exits,
		.ple_exits = watched->time.spin_exits,
		.ple_exits_user = watched->time.user_spin_exits,
		.yields_tried = watched->yields_tried,
		.yields_succeeded = watched->yields_succeeded,
		.slices_lost = watched->slices_lost,
	};
}

/* The thread's VM; NULL if it no longer exists. */
static __always_inline struct unspin_watch_vm *vm_of(const struct watched_vcpu *watched)
{
	u64 kvm = watched->kvm_pointer;
	struct unspin_watch_vm *vm = bpf_map_lookup_elem(&vms, &kvm);

	return vm && vm->number == watched->vm ? vm : NULL;
}

/* The thread no longer serves its vCPU: adds its counts to its VM's. Several threads may add at the same time. */
static __noinline int leave_vm(struct watched_vcpu *watched, struct task_struct *task)
{
	struct unspin_watch_counters counters;
	struct unspin_watch_vm *vm;

	if (!watched || !task || !watched->vm)
		return 0;
	vm = vm_of(watched);
	sum_up(watched, task, &counters);
	watched->vm = 0;
	if (!vm)
		return 0;
#define ADD(field) __sync_fetch_and_add(&vm->ended.field, counters.field)
	ADD(run_ns);
	ADD(wait_ns);
	ADD(halted_ns);
	ADD(guest_ns);
	ADD(spin_ns);
	ADD(handling_ns);
	ADD(exits);
	ADD(ple_exits);
	ADD(ple_exits_user);
	ADD(yields_tried);
	ADD(yields_succeeded);
	ADD(slices_lost);
#undef ADD
	return 0;
}

/* A VM without a number, too large for the stack. */
static const struct unspin_watch_vm no_vm SEC(".rodata.no_vm");

/* The VM at that address, which gets a number if it has none; NULL: the map is full. */
static __always_inline struct unspin_watch_vm *numbered(u64 kvm)
{
	struct unspin_watch_vm *vm = bpf_map_lookup_elem(&vms, &kvm);

	if (!vm) {
		bpf_map_update_elem(&vms, &kvm, &no_vm, BPF_NOEXIST);
		vm = bpf_map_lookup_elem(&vms, &kvm);
	}
	/* If another CPU was first, its number is kept and this one is never used. */
	if (vm && !vm->number)
		__sync_val_compare_and_swap(&vm->number, 0, __sync_fetch_and_add(&globals.vms, 1) + 1);
	return vm;
}

/* The slow path of serving(): a new thread, one that serves another vCPU now, or the first exit after a VM was destroyed. */
static __noinline struct watched_vcpu *begin_serving(struct kvm_vcpu *vcpu, u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct watched_vcpu *watched;
	struct unspin_watch_vm *vm;

	if (!vcpu)
		return NULL;
	vm = numbered((u64)vcpu->kvm);
	watched = bpf_task_storage_get(&vcpus, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!vm || !watched)
		return NULL;
	if (watched->vm == vm->number && watched->vcpu_pointer == (u64)vcpu) {
		watched->generation = globals.generation;
		return watched;
	}
	leave_vm(watched, task);
	__builtin_memset(watched, 0, sizeof(*watched));
	watched->vcpu_pointer = (u64)vcpu;
	watched->kvm_pointer = (u64)vcpu->kvm;
	watched->generation = globals.generation;
	watched->since_ns = now_ns;
	watched->vcpu = vcpu->vcpu_id;
	watched->before = counts_of(task);
	watched->vm = vm->number;
	return watched;
}

/* The counters of the current thread, which is inside KVM_RUN for `vcpu`; NULL: no memory is left. Interrupts are off. */
static __always_inline struct watched_vcpu *serving(struct kvm_vcpu *vcpu, u64 now_ns)
{
	struct watched_vcpu *watched = bpf_task_storage_get(&vcpus, bpf_get_current_task_btf(), NULL, 0);

	if (watched && watched->vcpu_pointer == (u64)vcpu && watched->generation == globals.generation)
		return watched;
	return begin_serving(vcpu, now_ns);
}

#endif
