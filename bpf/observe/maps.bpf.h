/* SPDX-License-Identifier: GPL-2.0-only */
/* maps.bpf.h - the maps and globals of the observer, and the options that user space sets. */
#ifndef UNSPIN_BPF_OBSERVE_MAPS_H
#define UNSPIN_BPF_OBSERVE_MAPS_H

#include "../common/reads.bpf.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../../abi/bpf/observe.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets the real size, also of free_slots and vcpu_of_thread */
	__type(key, u32);
	__type(value, struct unspin_observed_thread);
} threads SEC(".maps");

/* Indices of `threads` that are free; user space fills the queue. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(key_size, 0);
	__uint(value_size, sizeof(u32));
} free_slots SEC(".maps");

/* A task's index in `threads` plus 1; 0: it has none. */
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

/* struct kvm * -> the VM's number. */
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

/* Whether user space has selected events of `kind`. Constant to the verifier, which drops the code of the others. */
static __always_inline bool wants(u32 kind)
{
	return options.event_mask & (1u << kind);
}

/*
 * What runs on each CPU: RUNNING_UNKNOWN, RUNNING_NO_VCPU, or an index of `threads` plus RUNNING_SLOTS. Written by
 * sched_switch and by adopt(). It saves most lookups by task; a reader must compare the slot's task_pointer or
 * vcpu_pointer.
 */
#define RUNNING_UNKNOWN 0
#define RUNNING_NO_VCPU 1
#define RUNNING_SLOTS 2
#define CPUS_MAX 8192 /* the largest CONFIG_NR_CPUS of x86 (arch/x86/Kconfig) */
u32 running[CPUS_MAX] SEC(".data.running");

/* This CPU's entry of `running`. */
static __always_inline u32 *running_here(void)
{
	return &running[bpf_get_smp_processor_id() & (CPUS_MAX - 1)]; /* in bounds by the mask */
}

#endif
