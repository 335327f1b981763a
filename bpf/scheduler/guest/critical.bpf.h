/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * critical.bpf.h - the fact `critical` of a guest that registered no pv page: by its kernel's own counts, or
 * else by its instruction pointer. And of a thread that counts in a page of its own.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_CRITICAL_H
#define UNSPIN_BPF_SCHEDULER_GUEST_CRITICAL_H

#include "../process_threads.bpf.h"
#include "functions.bpf.h"
#include "kernel_counts.bpf.h"

/* Counts are read while the vCPU's thread is current only: then their addresses mean what its VMM's process has there. */
static __always_inline struct unspin_fact critical_unsaid(struct task_struct *p, const struct task_context *task)
{
	struct unspin_pv_page *page = page_of(p, task);
	s64 critical;

	if (page)
		return (struct unspin_fact){page->critical, 0};
	if (!task->vcpu || task->vm_generation != destroyed || bpf_get_current_task_btf() != p ||
	    scheduled(p)->flags & PF_EXITING)
		return UNSPIN_UNKNOWN_FACT;
	critical = critical_by_counts(task->vcpu);
	return critical < 0 ? critical_by_address(task) : (struct unspin_fact){critical, 0};
}

#endif
