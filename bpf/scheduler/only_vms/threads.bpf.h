/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads.bpf.h - which threads are to be under the scheduler where only VMs are (SCX_OPS_SWITCH_PARTIAL): vCPUs as they enter their
 * guests, and threads that took a page to count critical sections in. User space moves them: no BPF program changes a task's class.
 */
#ifndef UNSPIN_BPF_SCHEDULER_ONLY_VMS_THREADS_H
#define UNSPIN_BPF_SCHEDULER_ONLY_VMS_THREADS_H

#include "../state.bpf.h"

/* struct unspin_steer_thread */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes; set by the loader */
} moves SEC(".maps");

/* Reports a thread to user space, once. If the ring is full it is reported the next time. */
static __always_inline void announce(struct task_struct *p, struct task_context *task, u32 kind)
{
	struct unspin_steer_thread *record;

	if (task->announced)
		return;
	record = bpf_ringbuf_reserve(&moves, sizeof(*record), 0);
	if (!record)
		return;
	record->time_ns = bpf_ktime_get_ns();
	record->process = scheduled(p)->tgid;
	record->thread = scheduled(p)->pid;
	record->kind = kind;
	record->parent = kind == UNSPIN_STEER_THREAD_CHILD ? (u32)bpf_get_current_pid_tgid() : 0;
	/* A child may become a vCPU. */
	task->announced = kind != UNSPIN_STEER_THREAD_CHILD;
	bpf_ringbuf_submit(record, 0);
}

/* A task with our policy is made by fork() or clone(): SCHED_RESET_ON_FORK leaves SCHED_EXT (sched_fork(), Linux 7.2). */
static __always_inline void note_fork(struct task_struct *p, struct task_context *task, bool fork)
{
	task->inherits = fork && scheduled(p)->policy == SCHED_EXT;
}

/* It becomes ours: in scx_post_fork(), where it can be found by its number, or in sched_setscheduler(). */
static __always_inline void note_child(struct task_struct *p, struct task_context *task)
{
	if (!task->inherits)
		return;
	task->inherits = 0;
	announce(p, task, UNSPIN_STEER_THREAD_CHILD);
}

#endif
