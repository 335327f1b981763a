/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * virtual_time.bpf.h - virtual time: how far the tasks of a queue have come, and who is placed where among them.
 *
 * A queue's clock shows the vtime of the last task of it that began a slice while none that waited had less. Who comes, or
 * goes on, is only so far behind: credit is not saved. A light task that runs while nobody waits takes the clock along at
 * the pace of its weight. In its own queue that harms nobody, for whoever runs there is taken along, too. In another one it
 * would: a single clock for all queues let a task that was pinned to a CPU run far ahead, and who woke up and was placed
 * beside it waited until all others had come that far (under stress-ng a sleeper was 677 ms late, 20 ms with the kernel's
 * scheduler). A single average over all tasks (as avg_vruntime() of kernel/sched/fair.c, Linux 7.2) does not know which
 * tasks can be where: one that never leaves its CPU held it back, and two others then shared one CPU as 3 to 1.
 *
 * So each queue has its own clock, and where a CPU chooses between its own queue and the shared one, they are set side by
 * side by an offset. It is made anew when a task of the CPU's queue begins a slice and nobody waits in either, for then neither
 * has a claim on the other. While tasks wait in both, the least vtime is served, by weight, and only what no slice can have
 * earned is taken off: a task that ran alone somewhere else for long took its queue's clock along. (Where only the shared
 * queue was looked at, and the weight of the first said alone how far it can be, a task that waited for its CPU was set back
 * at each slice of a heavy one there, and had 6 % more than was its own.)
 */
#ifndef UNSPIN_BPF_SCHEDULER_VIRTUAL_TIME_H
#define UNSPIN_BPF_SCHEDULER_VIRTUAL_TIME_H

#include "weights.bpf.h"

#define SHARED_QUEUE 0x100000u /* above every CPU number, which names that CPU's queue */
#define NO_QUEUE 0x100001u
/*
 * A slice ends at the first tick after its slice: at CONFIG_HZ=250, as Debian's kernels have it. Slices and a tick bound the
 * lag on the fair class, too (update_entity_lag(), kernel/sched/fair.c); how many is ours.
 */
#define TICK_NS 4000000ull

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

/* How far a task may be from others for what it has run, or not run: one of nice 0 that is alone, */
static __always_inline u64 plain_reach(void)
{
	return 2 * options.slice_ns + TICK_NS;
}

/* and one of that weight. */
static __always_inline u64 reach(u64 weight)
{
	return weighted(weight, plain_reach());
}

/* Where the task has come, comparable with others. */
static __always_inline u64 position_of(const struct task_context *task)
{
	return task->vtime_ns + offset_of(task->home);
}

/* No further behind `now_ns` than that. */
static __always_inline void clamp_vtime(struct task_context *task, u64 weight, u64 now_ns)
{
	u64 floor_ns = now_ns - reach(weight);

	if (before(task->vtime_ns, floor_ns))
		task->vtime_ns = floor_ns;
}

/* The task comes to a queue, or to it again. A queue of a CPU that nobody waits in is as far as the shared one. */
static __always_inline void place_task(struct task_context *task, u32 queue)
{
	u64 weight = effective_weight(task), now_ns = clock_of(queue), abreast_ns;
	u64 debt_ns = __sync_lock_test_and_set(&task->debt_ns, 0);

	if (task->home != queue) {
		task->vtime_ns += offset_of(task->home) - offset_of(queue);
		task->home = queue;
	}
	task->vtime_ns += weighted(weight, debt_ns);
	abreast_ns = shared_now_ns - offset_of(queue);
	if (before(now_ns, abreast_ns) && scx_bpf_dsq_nr_queued(queue) == 0)
		now_ns = abreast_ns;
	clamp_vtime(task, weight, now_ns);
}

/* The task has run so much more. */
static __always_inline void charge_vtime(struct task_context *task, u64 ran_ns)
{
	u64 weight = effective_weight(task);

	task->effective = weight;
	ran_ns += __sync_lock_test_and_set(&task->debt_ns, 0);
	task->vtime_ns += weighted(weight, ran_ns);
	clamp_vtime(task, weight, clock_of(task->home));
}

/* How far the one that is ahead is beyond its reach; one of more weight may be where another took its queue's clock. */
static __always_inline u64 beyond(struct task_struct *ahead, u64 by_ns)
{
	const struct task_context *task = context_of(ahead);
	u64 reach_ns;

	if (!task || by_ns <= plain_reach())
		return 0;
	reach_ns = reach(effective_weight(task));
	if (reach_ns < plain_reach())
		reach_ns = plain_reach();
	return by_ns > reach_ns ? by_ns - reach_ns : 0;
}

/* Sets the first of a CPU's queue and the first of the shared one side by side; what is to be added to own_ns for that. */
static __always_inline u64 align(struct cpu_context *here, struct task_struct *own, u64 own_ns,
				 struct task_struct *common, u64 common_ns)
{
	u64 more_ns = before(own_ns, common_ns) ? beyond(common, common_ns - own_ns) : -beyond(own, own_ns - common_ns);

	here->offset_ns += more_ns;
	return more_ns;
}

/*
 * A new task, which goes by the shared queue's clock at first, has to wait a slice, as with START_DEBIT of the fair class up
 * to Linux 6.5 (place_entity()): tasks that are made one after another would otherwise always be first.
 */
static __always_inline void start(struct task_context *task)
{
	task->home = SHARED_QUEUE;
	task->effective = effective_weight(task);
	task->vtime_ns = shared_now_ns + weighted(task->effective, options.slice_ns);
}

/*
 * The task begins a slice. Not always is it the least then: who becomes ours, or changes its weight, while it runs goes on
 * where it is, and a slice is passed on to whoever was named. Those who wait in its queue must not fall behind the clock
 * for that: it goes to the least of them at most, as min_vruntime of the fair class did (update_min_vruntime(), Linux 6.5).
 */
static __always_inline void set_clock(const struct task_context *task)
{
	struct cpu_context *there = cpu_of(task->home);
	struct task_struct *first = scx_bpf_dsq_peek(task->home);
	u64 least_ns = task->vtime_ns;

	if (first && before(scheduled(first)->scx.dsq_vtime, least_ns))
		least_ns = scheduled(first)->scx.dsq_vtime;
	if (!there) {
		if (before(shared_now_ns, least_ns))
			shared_now_ns = least_ns;
		return;
	}
	if (before(there->now_ns, least_ns))
		there->now_ns = least_ns;
	if (there->flags & UNSPIN_STEER_CPU_SHARED && !first && scx_bpf_dsq_nr_queued(SHARED_QUEUE) == 0)
		there->offset_ns = shared_now_ns - there->now_ns;
}

#endif
