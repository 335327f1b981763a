/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * state.bpf.h - the state of each VM and vCPU whose pause-loop window or spin threshold unspin sets, and how it is
 * found.
 */
#ifndef UNSPIN_BPF_WINDOW_STATE_H
#define UNSPIN_BPF_WINDOW_STATE_H

#include "../common/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../../abi/bpf/window.h"
#include "../../policy/model/apple.h"
#include "../../policy/model/spin_threshold.h"
#include "../common/disclosure_maps.bpf.h"

#define DEEPEST_CGROUP 15 /* levels below the root that are searched, as in policy/mechanics/weights.h */

/* include/uapi/linux/bpf.h. The kernel finds the lock in a map's value by this type's name. */
struct bpf_spin_lock {
	u32 val;
};

struct vm_state {
	struct bpf_spin_lock lock;
	u32 number;
	u32 process;
	u32 vcpus;
	u32 wanted;	/* fixed and apple: the window of all its vCPUs */
	u32 notified;	/* 1: its guest's threshold may be set */
	u64 windows;	/* sum of its vCPUs' windows */
	u64 mean_units; /* struct unspin_window_epoch */
	u64 begin_ns;
	struct unspin_epoch epoch;
	struct unspin_apple apple;
	/* Must be last: user space reads them at the value's end. */
	struct unspin_window_sums sums;
};
_Static_assert(sizeof(struct vm_state) - __builtin_offsetof(struct vm_state, sums) == sizeof(struct unspin_window_sums),
	       "the sums end with the value");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64); /* struct kvm * */
	__type(value, struct vm_state);
} vms SEC(".maps");

struct vcpu_state {
	u64 vcpu;	/* struct kvm_vcpu *, only compared */
	u64 vm;		/* struct kvm *, likewise */
	u64 destroyed;	/* globals.destroyed when this was last known to be valid */
	u64 counted_ns; /* CPU time is counted up to here; 0: off its CPU */
	u64 left_ns;	/* time of the pause-loop exit that is being handled; 0: none */
	u64 entered_ns; /* time of the last entry into the guest; 0: none, or left since (thresholds) */
	u32 window;	/* in force from the next entry on */
	u32 arrived;	/* 1: it was switched in and has not entered its guest since */
	/* window/notify.bpf.h */
	u64 pv_page;	 /* host address of its guest's struct unspin_pv_page; 0: none */
	u64 inside_ns;	 /* time in the guest since the last exit that counted */
	u32 acknowledge; /* 1: it has registered a page that is not acknowledged yet */
	u32 changed;	 /* 1: its threshold has changed since the last exit that counted */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct vcpu_state);
} vcpus SEC(".maps");

/* Process ids whose VMs are handled, unless options.everyone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} epochs SEC(".maps");

const volatile struct unspin_window_options options;
struct unspin_window_globals globals SEC(".data.globals");

static __always_inline struct unspin_window_rule window_rule(void)
{
	return (struct unspin_window_rule){options.control, options.base, options.grow, options.shrink, options.max};
}

static __always_inline struct unspin_apple_rule apple_rule(void)
{
	return (struct unspin_apple_rule){options.initial, options.lower, options.upper, options.delta};
}

static __always_inline struct vm_state *vm_at(u64 kvm)
{
	return bpf_map_lookup_elem(&vms, &kvm);
}

/*
 * Whether the threshold of the current thread's guest is set: by process, else by the deepest cgroup listed, else
 * options.notifies.
 */
static __always_inline u32 is_notified(u32 process)
{
	u32 *disclosure = bpf_map_lookup_elem(&disclosure_processes, &process);

	for (int level = DEEPEST_CGROUP; level >= 0 && !disclosure; level--) {
		u64 id = bpf_get_current_ancestor_cgroup_id(level); /* 0, no cgroup's id, below the task's own level */

		disclosure = bpf_map_lookup_elem(&disclosure_cgroups, &id);
	}
	return disclosure ? *disclosure : options.notifies;
}

/* The VM's state, created at its first exit; NULL if the map is full. */
static __always_inline struct vm_state *vm_of(u64 kvm, u64 now_ns)
{
	struct unspin_apple_rule apple = apple_rule();
	struct vm_state *vm = vm_at(kvm), fresh = {};

	if (vm)
		return vm;
	fresh.number = __sync_fetch_and_add(&globals.vms, 1);
	fresh.process = bpf_get_current_pid_tgid() >> 32;
	fresh.notified = is_notified(fresh.process);
	fresh.begin_ns = now_ns;
	unspin_apple_start(&apple, &fresh.apple);
	fresh.wanted =
		options.control == UNSPIN_WINDOW_APPLE ? unspin_apple_window(&apple, &fresh.apple) : options.base;
	/* Of two vCPUs that create it at the same time one succeeds; the other's VM number stays unused. */
	bpf_map_update_elem(&vms, &kvm, &fresh, BPF_NOEXIST);
	return vm_at(kvm);
}

/* A task's state; NULL if it has none. Most tasks have no storage: the test saves the call. */
static __always_inline struct vcpu_state *state_of(struct task_struct *task)
{
	return task->bpf_storage ? bpf_task_storage_get(&vcpus, task, NULL, 0) : NULL;
}

/*
 * The state of the current thread, which serves `vcpu`, created if `make`; NULL where the VM is not to be handled or a
 * map is full.
 */
static __always_inline struct vcpu_state *serving(struct kvm_vcpu *vcpu, u64 now_ns, bool make)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 process = bpf_get_current_pid_tgid() >> 32;
	struct vcpu_state *self = bpf_task_storage_get(&vcpus, task, NULL, 0);
	struct vm_state *vm;

	if (self && self->vcpu == (u64)vcpu && self->destroyed == globals.destroyed)
		return self;
	if (!make || (!options.everyone && !bpf_map_lookup_elem(&processes, &process)))
		return NULL;
	vm = vm_of((u64)vcpu->kvm, now_ns);
	if (!self)
		self = bpf_task_storage_get(&vcpus, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!vm || !self) {
		__sync_fetch_and_add(&globals.left_alone, 1);
		return NULL;
	}
	/* A VM was destroyed, but not this vCPU's. */
	if (self->vcpu == (u64)vcpu && self->vm == (u64)vcpu->kvm &&
	    (self->window || options.bound == UNSPIN_BOUND_THRESHOLD)) {
		self->destroyed = globals.destroyed;
		return self;
	}
	*self = (struct vcpu_state){
		.vcpu = (u64)vcpu, .vm = (u64)vcpu->kvm, .destroyed = globals.destroyed, .counted_ns = now_ns};
	__sync_fetch_and_add(&vm->vcpus, 1);
	return self;
}

#endif
