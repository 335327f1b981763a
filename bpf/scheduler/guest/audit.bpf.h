/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * audit.bpf.h - what each VM's guest claimed and requested, counted by process, so that one that lies can be reported
 * (policy/classify/guest_audit.h defines them). Counted on the vCPU's own thread, except for what it sent, which is added up where the
 * thread is charged.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_AUDIT_H
#define UNSPIN_BPF_SCHEDULER_GUEST_AUDIT_H

#include "../state.bpf.h"

/* By process; those not heard of for longest make room. Preallocated: entries are made with interrupts off. */
struct {
	__uint(type, STEER_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct unspin_guest_audit);
} guest_audit SEC(".maps");

static struct unspin_guest_audit empty_audit;

/* The current thread is a vCPU's from now on. */
static __always_inline void begin_audit(void)
{
	u32 process = bpf_get_current_pid_tgid() >> 32;

	bpf_map_update_elem(&guest_audit, &process, &empty_audit, BPF_NOEXIST);
}

/* One more of what stands at that offset of struct unspin_guest_audit: a constant of the caller. */
static __always_inline void audit_count_at(u32 offset)
{
	u32 process = bpf_get_current_pid_tgid() >> 32;
	struct unspin_guest_audit *of = bpf_map_lookup_elem(&guest_audit, &process);

	/* In bounds: every offset is that of a field of 8 bytes. */
	if (of)
		__sync_fetch_and_add((u64 *)((void *)of + offset), 1);
}

#define audit_count(field) audit_count_at(__builtin_offsetof(struct unspin_guest_audit, field))

/* That vCPU's thread has run for so long since it was charged last, and has sent what stands in its context. */
static __always_inline void note_sent(struct task_struct *p, struct task_context *task, u64 ran_ns)
{
	u32 process = scheduled(p)->tgid; /* current may be the process that changes its class */
	struct unspin_guest_audit *of = bpf_map_lookup_elem(&guest_audit, &process);

	if (!of)
		return;
	/* Sending counts with interrupts on: what is taken here is taken once. */
	__sync_fetch_and_add(&of->sent, __sync_lock_test_and_set(&task->sent, 0));
	__sync_fetch_and_add(&of->unanswered, __sync_lock_test_and_set(&task->unanswered, 0));
	__sync_fetch_and_add(&of->ran_ns, ran_ns);
}

#endif
