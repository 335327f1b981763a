/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steer_told.bpf.h - what guests are told in their hint pages (abi/hint.h), and which guests are told how much.
 *
 * Every write happens while the vCPU's thread is current and may not be interrupted: at kvm_entry, just before the guest runs
 * on, and in sched_switch, where the thread that leaves still is current (__schedule(), kernel/sched/core.c, Linux 7.2).
 * Programs of a scheduler may not call bpf_probe_write_user() (bpf_tracing_func_proto(), kernel/trace/bpf_trace.c), so these
 * do, where the kernel lets them; a page that is our map's (steer_pages.bpf.h) is simply written. Only where the magic stands, only
 * words that change. A page that cannot be read or written is counted and left alone.
 *
 * How much: enum unspin_steer_tell, for everyone and for single processes and cgroups; a process's own word comes first.
 */
#ifndef UNSPIN_BPF_STEER_TOLD_H
#define UNSPIN_BPF_STEER_TOLD_H

#include "steer_guests.bpf.h"

/* What enum unspin_steer_tell says of processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} told_processes SEC(".maps");

/* The two words of struct unspin_hint that follow the vCPU and its pCPU, as they lie there. */
struct state_words {
	u32 vcpu_preempted;
	u32 pcpu_overloaded;
};
_Static_assert(__builtin_offsetof(struct unspin_hint, pcpu_overloaded) ==
		       __builtin_offsetof(struct unspin_hint, vcpu_preempted) + 4,
	       "written at once");

/* How much the current thread's guest is told. */
static __always_inline u32 tell_level(const struct task_context *task)
{
	u32 process = bpf_get_current_pid_tgid() >> 32;
	u32 *own = bpf_map_lookup_elem(&told_processes, &process);
	struct group *group;

	if (own)
		return *own;
	group = group_at(task->group);
	return group && group->tells ? group->tells - 1 : options.tell;
}

/* One or two words into the guest's page, if p is current, its page is one, and it may be told that much. */
static __always_inline void write_hint(struct task_struct *p, struct task_context *task, u32 offset, const u32 *from,
				       u32 count_of_words)
{
	struct hint_words words = {};
	struct unspin_hint *mapped;
	volatile u32 *to;

	if (!read_hint(p, task, &words))
		return;
	/* Inside the struct whose magic was read just now: callers name its members. */
	mapped = hint_in_map(task);
	if (mapped) {
		to = (void *)mapped + offset;
		to[0] = from[0];
		if (count_of_words > 1)
			to[1] = from[1];
		return;
	}
	/* Where it is 0 the verifier sees no call. Fails instead of faulting. */
	if (options.writes_memory &&
	    bpf_probe_write_user((void *)(task->hint + offset), from, count_of_words * sizeof(*from)))
		count(unspin_steer_hint_failures, 1);
}

/* Sets or clears the guest's `borrowed` word. */
static __always_inline void tell(struct task_struct *p, struct task_context *task, u32 borrowed)
{
	task->told = borrowed;
	write_hint(p, task, __builtin_offsetof(struct unspin_hint, borrowed), &borrowed, 1);
}

/* Tells the guest that its registration has been seen (abi/hint.h). */
static __always_inline void acknowledge(struct task_struct *p, struct task_context *task)
{
	u32 magic = UNSPIN_HINT_MAGIC;

	task->acknowledge = 0;
	write_hint(p, task, __builtin_offsetof(struct unspin_hint, acknowledged), &magic, 1);
}

/* eCS's two words (ruling 24), as far as this guest may know them. */
static __always_inline void publish(struct task_struct *p, struct task_context *task, bool preempted, bool overloaded)
{
	struct state_words words = {preempted, overloaded && task->tell == UNSPIN_STEER_TELL_ALL};
	u32 published = PUBLISHED | words.vcpu_preempted << 1 | words.pcpu_overloaded << 2;

	if (task->published == published)
		return;
	task->published = published;
	write_hint(p, task, __builtin_offsetof(struct unspin_hint, vcpu_preempted), (const u32 *)&words,
		   task->tell == UNSPIN_STEER_TELL_ALL ? 2 : 1);
}

/* The vCPU's thread leaves its pCPU. Not idle: somebody else has it now, so others can run on it. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *previous, struct task_struct *next)
{
	struct task_context *task;

	if (!previous || !next)
		return 0;
	task = context_of(previous);
	if (task && is_told(task))
		publish(previous, task, 1, unspin_pcpu_overloaded(scheduled(next)->pid != 0));
	return 0;
}

#endif
