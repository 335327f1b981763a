/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * process_threads.bpf.h - threads of processes that count their own critical sections, as guests do (abi/bpf/thread_run_state.h).
 *
 * Their pages lie in a map that processes map, so the scheduler reads and writes them in any context. A thread gets one by
 * a prctl() that the kernel does not implement, as a vCPU registers by a hypercall; from then on it may get grants, too.
 */
#ifndef UNSPIN_BPF_SCHEDULER_PROCESS_THREADS_H
#define UNSPIN_BPF_SCHEDULER_PROCESS_THREADS_H

#include "guest/choice.bpf.h"

#include "../../abi/bpf/thread_run_state.h"

#define BPF_F_MMAPABLE (1u << 10) /* include/uapi/linux/bpf.h */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNSPIN_THREADS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct unspin_pv_page);
} thread_pages SEC(".maps");

/* The thread that a page is of; 0: none's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNSPIN_THREADS_MAX);
	__type(key, u32);
	__type(value, u32);
} page_owners SEC(".maps");

/* The page of a thread; NULL: it has none, or another thread has it by now. */
static __always_inline struct unspin_pv_page *page_of(struct task_struct *p, const struct task_context *task)
{
	u32 index = task->page - 1, *owner;

	/* In bounds: the array map refuses an index beyond its end, 0xffffffff among them. */
	owner = task->page ? bpf_map_lookup_elem(&page_owners, &index) : NULL;
	return owner && *owner == (u32)scheduled(p)->pid ? bpf_map_lookup_elem(&thread_pages, &index) : NULL;
}

/* Notifies a thread that it runs on time that is not its own, or no longer does. */
static __always_inline void notify_thread(struct task_struct *p, const struct task_context *task, u32 borrowed)
{
	struct unspin_pv_page *page = task->page ? page_of(p, task) : NULL;

	if (page)
		page->borrowed = borrowed;
}

#ifndef UNSPIN_STEER_DRY /* a dry run makes no grants */
#include "only_vms/threads.bpf.h"

static __always_inline bool is_alive(u32 thread)
{
	struct task_struct *p = bpf_task_from_pid(thread);

	if (p)
		bpf_task_release(p);
	return p != NULL;
}

/* The current thread takes the page of that number, unless a thread that still exists has it. */
static __always_inline void take_page(struct task_struct *p, struct task_context *task, u32 index)
{
	u32 *owner = bpf_map_lookup_elem(&page_owners, &index);
	struct unspin_pv_page *page = bpf_map_lookup_elem(&thread_pages, &index);
	u32 self = scheduled(p)->pid, had;

	if (!owner || !page)
		return;
	had = *owner;
	if (had != self && had && is_alive(had))
		return;
	if (__sync_val_compare_and_swap(owner, had, self) != had)
		return;
	task->page = index + 1;
	choose_policies_of(p, task);
	page->borrowed = 0;
	page->acknowledged = UNSPIN_PV_PAGE_MAGIC;
	count(unspin_steer_threads, 1);
	if (options.only_vms)
		announce(p, task, UNSPIN_STEER_THREAD_PAGE);
}

/* A vCPU's thread has its guest's page: its process may not register another one. */
SEC("fentry/__x64_sys_prctl")
int BPF_PROG(on_prctl, const struct pt_regs *arguments)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task;

	if (BPF_CORE_READ(arguments, di) != UNSPIN_PRCTL_REGISTER_THREAD)
		return 0;
	task = context_of(p);
	if (task && !task->vcpu)
		take_page(p, task, BPF_CORE_READ(arguments, si));
	return 0;
}
#endif

#endif
