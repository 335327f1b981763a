/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_counts.bpf.h - the kernel's own counts of an unmodified Linux guest (abi/guest/counts.h), in place of a pv page.
 *
 * What a guest registers is checked once and kept as addresses in the VMM's process; they are read while its thread is
 * current only, as in scheduler/guest/vcpus.bpf.h, and nothing of it is written but `acknowledged` where the magic stands. A page
 * that is moved or freed makes the fact unknown, or wrong for that guest.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_KERNEL_COUNTS_H
#define UNSPIN_BPF_SCHEDULER_GUEST_KERNEL_COUNTS_H

#include "../../common/guest_memory.bpf.h"
#include "audit.bpf.h"

#include "../../../abi/guest/counts.h"
#include "../../../policy/steering/counts.h"

/* One vCPU's registration; of its thread. */
struct counted {
	u64 vcpu;	   /* that registered: another one's means nothing */
	u64 page;	   /* host addresses: of its struct unspin_counts, */
	u64 preempt_count; /* of the words that it names; current_task: 0 where the guest names no tasks */
	u64 current_task;
	u64 direct_map, direct_map_bytes;
	u64 task, task_at; /* the task looked up last, guest-virtual, and its host address; 0: none */
	u32 rcu_nesting, task_flags;
	u32 acknowledge; /* its registration is still to be acknowledged */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct counted);
} counted_tasks SEC(".maps");

/* The host address of a word of `bytes` at that guest-physical one; 0: misaligned, or no memory of the VM. */
static __always_inline u64 word_at(u64 vcpu, u64 guest_physical, u32 bytes)
{
	return guest_physical % bytes ? 0 : host_address(vcpu, guest_physical);
}

#ifndef UNSPIN_STEER_DRY /* a dry run takes no registration */
/* The current thread's guest registers its counts; it is in kernel mode. Not inlined, as host_address(). */
__attribute__((noinline)) int learn_counts(u64 vcpu, u64 guest_physical)
{
	struct unspin_counts registered = {};
	struct counted *counted;
	u64 page = 0;

	/* Inside one page and aligned, or it is none. */
	if (guest_physical % PAGE_BYTES <= PAGE_BYTES - sizeof(registered))
		page = word_at(vcpu, guest_physical, sizeof(u64));
	if (!page)
		audit_count(bad_addresses);
	/* A safe read: it fails instead of faulting. */
	if (!page || bpf_probe_read_user(&registered, sizeof(registered), (void *)page) ||
	    registered.magic != UNSPIN_COUNTS_MAGIC)
		return 0;
	if (registered.rcu_nesting > UNSPIN_COUNTS_OFFSET_MAX || registered.task_flags > UNSPIN_COUNTS_OFFSET_MAX)
		return 0;
	counted =
		bpf_task_storage_get(&counted_tasks, bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!counted)
		return 0;
	counted->vcpu = 0;
	counted->page = page;
	counted->preempt_count = word_at(vcpu, registered.preempt_count, sizeof(u32));
	if (!counted->preempt_count) {
		audit_count(bad_addresses);
		return 0;
	}
	counted->current_task = word_at(vcpu, registered.current_task, sizeof(u64));
	counted->direct_map = registered.direct_map;
	counted->direct_map_bytes = registered.direct_map_bytes;
	counted->rcu_nesting = registered.rcu_nesting;
	counted->task_flags = registered.task_flags;
	counted->task = 0;
	counted->task_at = 0;
	counted->acknowledge = 1;
	counted->vcpu = vcpu;
	return 1;
}
#endif

/*
 * The task that runs in the guest. Outside the direct map there is one task, the idle one of the first CPU (init_task, in the
 * kernel's image); of a task that cannot be read nothing is known.
 */
static __always_inline void read_task_counts(u64 vcpu, struct counted *counted, struct unspin_counts_seen *seen)
{
	u64 task = 0;

	if (!counted->current_task || bpf_probe_read_user(&task, sizeof(task), (void *)counted->current_task))
		return;
	if (task != counted->task) {
		counted->task = task;
		counted->task_at = 0;
		if (task - counted->direct_map < counted->direct_map_bytes)
			counted->task_at = word_at(vcpu, task - counted->direct_map, sizeof(u64));
	}
	if (!counted->task_at) {
		seen->task_flags = UNSPIN_PF_IDLE;
		return;
	}
	/* Offsets below 32 KiB: a task_struct is one piece of the direct map, and so, but for a slot's end, here. */
	bpf_probe_read_user(&seen->task_flags, sizeof(u32), (void *)(counted->task_at + counted->task_flags));
	if (counted->rcu_nesting)
		bpf_probe_read_user(&seen->rcu_nesting, sizeof(u32), (void *)(counted->task_at + counted->rcu_nesting));
}

/* The fact `critical` of the current thread's guest by its counts; -1: unknown. Its context shows that it is this vCPU's. */
__attribute__((noinline)) s64 critical_by_counts(u64 vcpu)
{
	struct counted *counted = bpf_task_storage_get(&counted_tasks, bpf_get_current_task_btf(), NULL, 0);
	struct unspin_counts_seen seen = {};
	struct unspin_counts registered = {};

	if (!counted || counted->vcpu != vcpu)
		return -1;
	/* Safe reads: they fail instead of faulting. */
	if (bpf_probe_read_user(&registered, sizeof(registered), (void *)counted->page) ||
	    registered.magic != UNSPIN_COUNTS_MAGIC ||
	    bpf_probe_read_user(&seen.preempt_count, sizeof(u32), (void *)counted->preempt_count)) {
		count(unspin_steer_pv_page_failures, 1);
		return -1;
	}
	read_task_counts(vcpu, counted, &seen);
	seen.sleeping = registered.hooks ? registered.sleeping : 0;
	return unspin_counts_critical(&seen);
}

/* Acknowledges the guest's registration. Current is the vCPU's thread, interrupts are off. */
static __always_inline void acknowledge_counts(struct task_struct *p, struct kvm_vcpu *vcpu)
{
	struct counted *counted = bpf_task_storage_get(&counted_tasks, p, NULL, 0);
	u32 magic = 0;

	if (!counted || !counted->acknowledge || counted->vcpu != (u64)vcpu)
		return;
	counted->acknowledge = 0;
	if (bpf_probe_read_user(&magic, sizeof(magic), (void *)counted->page) || magic != UNSPIN_COUNTS_MAGIC)
		return;
	/* One aligned word inside the page whose magic was read just now; fails instead of faulting. */
	if (options.writes_memory &&
	    bpf_probe_write_user((void *)(counted->page + __builtin_offsetof(struct unspin_counts, acknowledged)),
				 &magic, sizeof(magic)))
		count(unspin_steer_pv_page_failures, 1);
}

#endif
