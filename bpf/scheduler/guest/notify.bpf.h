/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * notify.bpf.h - what is written into guests' pv pages (abi/guest/pv_page.h), and into which guests' pages how much of it.
 *
 * Every write happens while the vCPU's thread is current and may not be interrupted: at kvm_entry, just before the guest
 * continues, and in kvm_sched_out(), where the thread that leaves still is current (prepare_task_switch(), kernel/sched/core.c, Linux 7.2).
 * Programs of a scheduler may not call bpf_probe_write_user() (bpf_tracing_func_proto(), kernel/trace/bpf_trace.c), so these
 * do, where the kernel lets them; a page of our map (pv_page_map.bpf.h) is written directly. Only a page with the magic number is written, and only
 * words that change. A page that cannot be read or written is counted, and not written.
 *
 * How much: enum unspin_disclosure, for all, and for single processes and cgroups; a process's setting overrides its cgroup's.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_NOTIFY_H
#define UNSPIN_BPF_SCHEDULER_GUEST_NOTIFY_H

#include "vcpus.bpf.h"

/* The two words of struct unspin_pv_page that follow the vCPU and its pCPU. */
_Static_assert(__builtin_offsetof(struct unspin_pv_page, pcpu_overloaded) ==
		       __builtin_offsetof(struct unspin_pv_page, vcpu_preempted) + 4,
	       "written at once");

/* How much the current thread's guest is notified of. */
static __always_inline u32 disclosure_of(const struct task_context *task)
{
	u32 process = bpf_get_current_pid_tgid() >> 32;
	u32 *own = bpf_map_lookup_elem(&disclosure_processes, &process);
	struct group *group;

	if (own)
		return *own;
	group = group_at(task->group);
	return group && group->disclosure ? group->disclosure - 1 : options.disclosure;
}

/*
 * One or two words into the guest's page, if p is current, its page is one, and its disclosure allows that; `words`: the first
 * in the lower half. Returns 0. Not inlined, and not static: as refresh_facts().
 */
__attribute__((noinline)) int write_pv_page(struct task_struct *p __arg_trusted,
					    struct task_context *task __arg_nonnull, u32 offset, u64 words,
					    u32 count_of_words)
{
	struct pv_page_words seen = {};
	struct unspin_pv_page *mapped;
	volatile u32 *to;

	/* In bounds, as callers name members: checked for the verifier. */
	if (offset > sizeof(struct unspin_pv_page) - sizeof(words) || !read_pv_page(p, task, &seen))
		return 0;
	/* Inside the struct whose magic was read just now. */
	mapped = pv_page_in_map(task);
	if (mapped) {
		to = (void *)mapped + offset;
		to[0] = words;
		if (count_of_words > 1)
			to[1] = words >> 32;
		return 0;
	}
	/* Where it is 0 the verifier drops the call. Fails instead of faulting. */
	if (options.writes_memory && bpf_probe_write_user((void *)(task->pv_page + offset), &words,
							  count_of_words > 1 ? sizeof(words) : sizeof(u32)))
		count(unspin_steer_pv_page_failures, 1);
	return 0;
}

/* Sets or clears the guest's `borrowed` word. */
static __always_inline void set_borrowed_word(struct task_struct *p, struct task_context *task, u32 borrowed)
{
	task->borrowed_is_set = borrowed;
	write_pv_page(p, task, __builtin_offsetof(struct unspin_pv_page, borrowed), borrowed, 1);
}

/* Acknowledges the guest's registration (abi/guest/pv_page.h). */
static __always_inline void acknowledge(struct task_struct *p, struct task_context *task)
{
	task->acknowledge = 0;
	write_pv_page(p, task, __builtin_offsetof(struct unspin_pv_page, acknowledged), UNSPIN_PV_PAGE_MAGIC, 1);
}

/* eCS's two words (ruling 24), as far as this guest's disclosure allows. */
static __always_inline void publish(struct task_struct *p, struct task_context *task, bool preempted, bool overloaded)
{
	u64 disclosed = overloaded && task->disclosure == UNSPIN_DISCLOSE_ALL;
	u32 published = PUBLISHED | preempted << 1 | (u32)disclosed << 2;

	if (task->published == published)
		return;
	task->published = published;
	/* The two words lie side by side (abi/guest/pv_page.h). */
	write_pv_page(p, task, __builtin_offsetof(struct unspin_pv_page, vcpu_preempted), disclosed << 32 | preempted,
		      task->disclosure == UNSPIN_DISCLOSE_ALL ? 2 : 1);
}

/*
 * The thread, still current, leaves its pCPU while it is inside KVM_RUN: at no switch of another thread is anything to be done.
 * Outside of that the guest's words stay as they are. Not idle: another task has the pCPU now, so others can run on it.
 */
SEC("fentry/kvm_sched_out")
int BPF_PROG(on_vcpu_leaves, void *notifier, struct task_struct *next)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task = context_of(p);

	if (task && is_notified(task))
		publish(p, task, 1, unspin_pcpu_overloaded(scheduled(next)->pid != 0));
	return 0;
}

#endif
