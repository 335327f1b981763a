// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - publishes which threads of a process run, in a map that the process has mapped
 * (abi/bpf/thread_run_state.h). A thread registers its struct by running register_this_thread() itself
 * (BPF_PROG_RUN).
 */
#include "../common/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../../abi/bpf/thread_run_state.h"

char program_license[] SEC("license") = "GPL";

#define BPF_F_MMAPABLE (1u << 10) /* include/uapi/linux/bpf.h */

/* kernel/sched/sched.h: a CPU's run queue; nr_running counts its runnable tasks, the current one included. */
struct rq {
	unsigned int nr_running;
} __attribute__((preserve_access_index));
extern const struct rq runqueues __ksym __weak; /* no address where the kernel was built without KALLSYMS_ALL */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNSPIN_THREADS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct unspin_thread_run_state);
} run_states SEC(".maps");

/* The index of a task's struct in `run_states`, plus 1. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} run_state_of_task SEC(".maps");

/* What a thread passes to register_this_thread(). */
struct registration {
	u32 number;
	u32 done;
};

/* The task's struct; NULL if the task is not registered. */
static __always_inline struct unspin_thread_run_state *run_state_of(struct task_struct *task)
{
	/* Most tasks have no storage: the test saves the call. */
	u32 *number = task->bpf_storage ? bpf_task_storage_get(&run_state_of_task, task, NULL, 0) : NULL;
	u32 index;

	if (!number || !*number)
		return NULL;
	index = *number - 1;
	return bpf_map_lookup_elem(&run_states, &index); /* NULL when out of bounds */
}

/* The current thread's state is published in run_states[registered->number] from now on. */
SEC("syscall")
int register_this_thread(struct registration *registered)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct unspin_thread_run_state *state;
	u32 number = registered->number, *of_task;

	registered->done = 0;
	state = bpf_map_lookup_elem(&run_states, &number);
	of_task = bpf_task_storage_get(&run_state_of_task, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state || !of_task)
		return 0;
	*state = (struct unspin_thread_run_state){};
	*of_task = number + 1;
	registered->done = 1;
	return 0;
}

static __always_inline void leave(struct task_struct *previous, bool runnable)
{
	struct unspin_thread_run_state *leaves = run_state_of(previous);

	if (!leaves)
		return;
	leaves->state = runnable ? UNSPIN_THREAD_PREEMPTED : UNSPIN_THREAD_BLOCKED;
	leaves->switches++;
}

static __always_inline void enter(struct unspin_thread_run_state *comes, bool overloaded)
{
	comes->cpu = bpf_get_smp_processor_id();
	comes->overloaded = overloaded;
	comes->state = UNSPIN_THREAD_RUNS;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *previous, struct task_struct *next, u32 previous_state)
{
	struct unspin_thread_run_state *comes = run_state_of(next);
	const struct rq *here;

	leave(previous, preempt || !previous_state);
	if (comes && &runqueues) {
		here = bpf_this_cpu_ptr(&runqueues);
		enter(comes, here->nr_running > 1);
	}
	return 0;
}

/*
 * The same without the run queue: `overloaded` if the task that leaves is runnable and not the idle task. Loaded where
 * the kernel has no address for `runqueues`.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_plain, bool preempt, struct task_struct *previous, struct task_struct *next, u32 previous_state)
{
	struct unspin_thread_run_state *comes = run_state_of(next);
	bool runnable = preempt || !previous_state;

	leave(previous, runnable);
	if (comes)
		enter(comes, runnable && previous->pid);
	return 0;
}
