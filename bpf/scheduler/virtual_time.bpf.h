/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * virtual_time.bpf.h - virtual times of tasks and clocks of queues, by the rules of policy/mechanics/virtual_time.h: here is which
 * queue has which clock, which CPUs serve it, and what other CPUs change meanwhile.
 */
#ifndef UNSPIN_BPF_SCHEDULER_VIRTUAL_TIME_H
#define UNSPIN_BPF_SCHEDULER_VIRTUAL_TIME_H

#include "weights.bpf.h"
#include "../../policy/mechanics/virtual_time.h"

#define SHARED_QUEUE 0x100000u /* above every CPU number, which names that CPU's queue */
#define NO_QUEUE 0x100001u
#define THROTTLED_QUEUE 0x100002u /* of those whose cgroup has used up its quota */
#define ANY_NODE (-1)

struct shared_cpus {
	struct bpf_cpumask __kptr *mask;
};

/* The CPUs that serve the shared queue; made by ops.init. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared_cpus);
} shared SEC(".maps");

static __always_inline const struct cpumask *shared_mask(void)
{
	u32 zero = 0;
	struct shared_cpus *cpus_shared = bpf_map_lookup_elem(&shared, &zero);

	return cpus_shared ? (const struct cpumask *)cpus_shared->mask : NULL;
}

/*
 * Whether it was preempted inside a migrate_disable(), which this very program has done to the current task once more. BPF
 * programs on tracepoints are such places: a guest that makes hypercalls without end is preempted there again and again.
 */
static __always_inline bool is_stuck(struct task_struct *p)
{
	return scheduled(p)->migration_disabled > (p == bpf_get_current_task_btf());
}

/* One of these CPUs that is idle, if any, looks for tasks. */
static __always_inline void kick_an_idle_cpu(const struct cpumask *among)
{
	s32 idle = scx_bpf_pick_idle_cpu(among, 0);

	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

/* A task has come to that queue. A CPU that is idle takes it; on one without a tick nothing else ends the slice of the task that runs. */
static __always_inline void kick_for(u32 queue)
{
	const struct cpumask *everywhere = shared_mask();
	struct cpu_context *there = cpu_of(queue);

	if (there)
		scx_bpf_kick_cpu(queue, there->flags & UNSPIN_STEER_CPU_NOHZ_FULL ? SCX_KICK_PREEMPT : SCX_KICK_IDLE);
	else if (everywhere)
		kick_an_idle_cpu(everywhere);
}

u64 shared_now_ns;

/* The clock of a queue; racing CPUs may set it back by a slice. */
static __always_inline u64 clock_of(u32 queue)
{
	struct cpu_context *there = cpu_of(queue);

	return there ? there->now_ns : shared_now_ns;
}

/* What is added to vtimes of that queue where they are compared with others. */
static __always_inline u64 offset_of(u32 queue)
{
	struct cpu_context *there = cpu_of(queue);

	return there ? there->offset_ns : 0;
}

/* Where the task has come, comparable with others. */
static __always_inline u64 position_of(const struct task_context *task)
{
	return task->vtime_ns + offset_of(task->home);
}

/* The task comes to a queue, or to it again; `wakes`: from sleep. */
static __always_inline void place_task(struct task_context *task, u32 queue, bool wakes)
{
	u64 weight = effective_weight(task), now_ns = clock_of(queue), abreast_ns;
	u64 debt_ns = __sync_lock_test_and_set(&task->debt_ns, 0);

	if (task->home != queue) {
		task->vtime_ns = unspin_moved_vtime(task->vtime_ns, offset_of(task->home), offset_of(queue));
		task->home = queue;
	}
	abreast_ns = unspin_abreast(shared_now_ns, offset_of(queue));
	/* The number that wait is read only where it matters. */
	now_ns = unspin_placing_clock(now_ns, abreast_ns,
				      unspin_before(now_ns, abreast_ns) && scx_bpf_dsq_nr_queued(queue) == 0);
	task->vtime_ns = unspin_place_vtime(task->vtime_ns, weight, debt_ns, now_ns, options.slice_ns);
	if (wakes) {
		task->effective = weight;
		task->vtime_ns = unspin_wake_vtime(task->vtime_ns, weight, task->lag_ns, task->burst_ns, now_ns,
						   options.slice_ns);
	}
}

/* The task has run so much more. */
static __always_inline void charge_vtime(struct task_context *task, u64 ran_ns)
{
	u64 weight = effective_weight(task);

	task->effective = weight;
	ran_ns += __sync_lock_test_and_set(&task->debt_ns, 0);
	task->vtime_ns = unspin_charge_vtime(task->vtime_ns, weight, ran_ns, clock_of(task->home), options.slice_ns);
}

/* The task, charged, goes to sleep. */
static __always_inline void note_sleep(struct task_struct *p, struct task_context *task)
{
	u64 runtime_ns = scheduled(p)->se.sum_exec_runtime;

	task->burst_ns = unspin_expected_burst(task->burst_ns, runtime_ns - task->slept_ns, options.slice_ns);
	task->slept_ns = runtime_ns;
	task->lag_ns = unspin_lag(task->vtime_ns, clock_of(task->home));
}

/* Sets the first of a CPU's queue and the first of the shared one side by side; what is to be added to own_ns for that. */
static __always_inline u64 align(struct cpu_context *here, struct task_struct *own, u64 own_ns,
				 struct task_struct *common, u64 common_ns)
{
	const struct task_context *ahead;
	u64 more_ns;

	if (!unspin_far_apart(own_ns, common_ns, options.slice_ns))
		return 0;
	ahead = context_of(unspin_before(own_ns, common_ns) ? common : own);
	if (!ahead)
		return 0;
	more_ns = unspin_align(own_ns, common_ns, effective_weight(ahead), options.slice_ns);
	here->offset_ns += more_ns;
	return more_ns;
}

/* A new task, which goes by the shared queue's clock at first. */
static __always_inline void start(struct task_context *task)
{
	task->home = SHARED_QUEUE;
	task->effective = effective_weight(task);
	task->burst_ns = options.slice_ns;
	task->vtime_ns = unspin_start_vtime(shared_now_ns, task->effective, options.slice_ns);
}

/* The task begins a slice. */
static __always_inline void set_clock(const struct task_context *task)
{
	struct cpu_context *there = cpu_of(task->home);
	struct task_struct *first = scx_bpf_dsq_peek(task->home);
	u64 first_ns = first ? scheduled(first)->scx.dsq_vtime : 0, now_ns;

	/* A clock that stays is not written: other CPUs use its cache line. Two branches: the verifier refuses one access to either. */
	if (!there) {
		now_ns = unspin_advance_clock(shared_now_ns, task->vtime_ns, first != NULL, first_ns);
		if (now_ns != shared_now_ns)
			shared_now_ns = now_ns;
		return;
	}
	now_ns = unspin_advance_clock(there->now_ns, task->vtime_ns, first != NULL, first_ns);
	if (now_ns != there->now_ns)
		there->now_ns = now_ns;
	if (there->flags & UNSPIN_STEER_CPU_SHARED && !first && scx_bpf_dsq_nr_queued(SHARED_QUEUE) == 0)
		there->offset_ns = unspin_offset_abreast(shared_now_ns, there->now_ns);
}

#endif
