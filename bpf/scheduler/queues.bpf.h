/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queues.bpf.h - where a task waits: a shared queue, a CPU's queue, or straight on an idle CPU.
 */
#ifndef UNSPIN_BPF_SCHEDULER_QUEUES_H
#define UNSPIN_BPF_SCHEDULER_QUEUES_H

#include "waits/crowd.bpf.h"
#include "waits/heir.bpf.h"
#include "throttle.bpf.h"

static __always_inline void insert(struct task_struct *p, struct task_context *task, u32 queue, u64 enq_flags)
{
	struct scx_bpf_dsq_insert_vtime_args args = {
		.dsq_id = queue,
		.slice = slice_of(task),
		.enq_flags = enq_flags,
	};

	if (!task->placed || task->home != queue)
		place_task(task, queue, enq_flags & SCX_ENQ_WAKEUP);
	task->placed = NOT_PLACED;
	args.vtime = task->vtime_ns;
	task->queue = queue;
	note_share(task, task_cpu(p), scheduled(p)->pid);
	__scx_bpf_dsq_insert_vtime(p, &args);
}

/*
 * Whether the task, placed, runs there at once; `protects`: not before a task of the host that runs there has had its time. Returns 1 or 0.
 * Not inlined, as clock_of().
 */
__attribute__((noinline)) int preempts(const struct task_context *task __arg_nonnull, u32 cpu, u64 now_ns,
				       bool protects)
{
	struct cpu_context *there = cpu_of(cpu);
	u64 weight, ran_ns = 0;

	if (!there)
		return 0;
	weight = there->runner_weight;
	if (!weight)
		return 0;
	if (unspin_before(there->runner_since_ns, now_ns))
		ran_ns = now_ns - there->runner_since_ns;
	if (protects && unspin_is_protected(there->runs.vm != 0, ran_ns))
		return 0;
	return unspin_wakeup_preempts(position_of(task), task->effective, task->burst_ns,
				      there->runner_ns + unspin_weighted(weight, ran_ns));
}

/* The same of a task of a shared queue, which may run on every CPU that serves that, and is compared with others there. */
static __always_inline bool preempts_anywhere(const struct task_context *task, u32 cpu, u64 now_ns)
{
	struct cpu_context *there = cpu_of(cpu);

	return there && there->flags & UNSPIN_STEER_CPU_SHARED && !there->offline &&
	       shared_queue_of(there) == task->home && preempts(task, cpu, now_ns, true);
}

/*
 * A task of the shared queue, placed, wakes up while no CPU is idle. The CPU on which it runs at once, or where it was: of
 * that one, the one that wakes it and one more ("the power of two choices"), not of all: there may be hundreds.
 */
static __always_inline s32 preempted_cpu(struct task_struct *p, struct task_context *task, s32 cpu)
{
	const struct cpumask *near = mask_of(task->home);
	u64 now_ns = bpf_ktime_get_ns();
	u32 other;

	task->placed = PLACED_TO_PREEMPT;
	if (preempts_anywhere(task, cpu, now_ns))
		return cpu;
	other = bpf_get_smp_processor_id();
	if (preempts_anywhere(task, other, now_ns))
		return other;
	if (near) {
		other = bpf_cpumask_any_and_distribute(near, scheduled(p)->cpus_ptr);
		if (preempts_anywhere(task, other, now_ns))
			return other;
	}
	task->placed = PLACED;
	return cpu;
}

/*
 * The same; an heir preempts only where it was. Otherwise it waits on the run queue of the CPU that wakes it, where it may come next: no
 * other one has to be locked for it.
 */
static __always_inline s32 waking_cpu(struct task_struct *p, struct task_context *task, s32 cpu, u64 wake_flags)
{
	u32 self = bpf_get_smp_processor_id();
	u64 now_ns = bpf_ktime_get_ns();

	if (!(wake_flags & SCX_WAKE_SYNC) || !name_heir(p, task, self))
		return preempted_cpu(p, task, cpu);
	task->placed = PLACED;
	if ((u32)cpu == self || !preempts_anywhere(task, cpu, now_ns)) {
		hand_over_at_once(p, task, self, now_ns);
		return self;
	}
	task->placed = PLACED_TO_PREEMPT;
	return cpu;
}

/*
 * Whether a task that wakes up and has been placed runs at once on that CPU, whose run queue is locked. If waiting tasks are ahead
 * of it, it waits, too.
 */
static __always_inline bool runs_at_once(struct task_struct *p, struct task_context *task, u32 queue, s32 cpu,
					 u64 enq_flags)
{
	struct task_struct *first;

	if (!preempts(task, cpu, bpf_ktime_get_ns(), true))
		return false;
	first = scx_bpf_dsq_peek(queue);
	if (first && unspin_before(scheduled(first)->scx.dsq_vtime, task->vtime_ns))
		return false;
	count(unspin_steer_wakeups_preempt, 1);
	task->placed = NOT_PLACED;
	task->queue = NO_QUEUE;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(task), enq_flags | SCX_ENQ_PREEMPT);
	return true;
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(steer_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct scx_bpf_select_cpu_and_args args = {.prev_cpu = prev_cpu, .wake_flags = wake_flags};
	const struct cpumask *everywhere = shared_mask();
	struct task_context *task = context_of(p);
	bool idle = false, shares, shares_here;
	s32 cpu;

	if (task) {
		task->placed = NOT_PLACED;
		task->idle_cpu = 0;
	}
	if (task && quotas && is_throttled(task, bpf_ktime_get_ns()))
		return prev_cpu;
	shares = everywhere && bpf_cpumask_subset(everywhere, scheduled(p)->cpus_ptr);
	if (shares) {
		cpu = __scx_bpf_select_cpu_and(p, everywhere, &args);
		idle = cpu >= 0;
		if (!idle)
			cpu = prev_cpu;
	} else {
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	}
	shares_here = options.domains < 2 ? shares : waits_shared(p, cpu);
	if (!idle && task && shares_here) {
		place_task(task, shared_queue_at(cpu), true);
		cpu = waking_cpu(p, task, cpu, wake_flags);
	}
	if (idle && task) {
		place_task(task, shares_here ? shared_queue_at(cpu) : cpu, true);
		if (options.only_vms) { /* it may be taken by now: steer_enqueue() looks, with its run queue locked */
			task->placed = PLACED;
			task->idle_cpu = cpu + 1;
			return cpu;
		}
		task->queue = NO_QUEUE;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(task), 0);
	}
	return cpu;
}

/*
 * Another CPU that the task may run on, if there is one. If a CPU without anything to run enqueues the task again
 * (look_for_movable()), it is that CPU, which is not marked idle at that moment: if it returns to its idle task without a switch,
 * it does not search again.
 */
static __always_inline u32 another_cpu(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	u32 self = bpf_get_smp_processor_id(), other;
	struct cpu_context *here = cpu_of(self);

	if (options.only_vms && enq_flags & SCX_ENQ_REENQ && here && !here->taken &&
	    bpf_cpumask_test_cpu(self, scheduled(p)->cpus_ptr))
		return self;
	other = bpf_cpumask_any_distribute(scheduled(p)->cpus_ptr);
	/* It goes around: the next one is not that CPU again. */
	return (s32)other == cpu ? bpf_cpumask_any_distribute(scheduled(p)->cpus_ptr) : other;
}

/*
 * Of the task's CPU and another one it may run on, the one with fewer waiting ("the power of two choices"); but one on which a
 * task of another class runs only if both are such.
 */
static __always_inline s32 better_cpu(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	u32 other = another_cpu(p, cpu, enq_flags);
	struct cpu_context *there = cpu_of(other), *here = cpu_of(cpu);

	if (!there || !here || there->offline || (s32)other == cpu)
		return cpu;
	if (options.only_vms && there->taken != here->taken)
		return here->taken ? (s32)other : cpu;
	return scx_bpf_dsq_nr_queued(other) < scx_bpf_dsq_nr_queued(cpu) ? (s32)other : cpu;
}

/* Tasks that may run elsewhere wait in queues of single CPUs: they may be behind a task of another class. */
u32 movable_waits;
u64 movable_next_ns; /* when they choose their CPUs anew, at the earliest */

/* It waits in that CPU's queue. A CPU that became idle before that is woken, and searches for it. */
static __always_inline void note_movable(struct task_struct *p, s32 cpu)
{
	struct cpu_context *there = cpu_of(cpu);

	if (!there || scheduled(p)->nr_cpus_allowed == 1)
		return;
	there->movable = 1;
	movable_waits = 1;
	if (there->taken)
		kick_idle_among(scheduled(p)->cpus_ptr);
}

/* A task that may not run on every shared CPU waits in the queue of one. */
static __always_inline void enqueue_on_cpu(struct task_struct *p, struct task_context *task, s32 cpu, u64 enq_flags)
{
	s32 idle;

	if (scheduled(p)->nr_cpus_allowed > 1) {
		idle = scx_bpf_pick_idle_cpu(scheduled(p)->cpus_ptr, 0);
		cpu = idle >= 0 ? idle : better_cpu(p, cpu, enq_flags);
	}
	if (enq_flags & SCX_ENQ_WAKEUP && cpu == task_cpu(p)) {
		place_task(task, cpu, true);
		task->placed = PLACED;
		if (runs_at_once(p, task, cpu, cpu, enq_flags))
			return;
	}
	insert(p, task, cpu, enq_flags);
	if (options.only_vms)
		note_movable(p, cpu);
	kick_for(cpu);
}

/* The task woke up where no task ran: whether it goes there, past the queues. The CPU's run queue is locked. */
static __always_inline bool goes_to_idle(struct task_struct *p, struct task_context *task, s32 cpu, u64 enq_flags)
{
	struct cpu_context *there = cpu_of(cpu);
	bool idle = task->idle_cpu == (u32)cpu + 1 && there && !there->taken;

	task->idle_cpu = 0;
	if (!idle)
		return false;
	task->placed = NOT_PLACED;
	task->queue = NO_QUEUE;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(task), enq_flags);
	return true;
}

SEC("struct_ops/enqueue")
void BPF_PROG(steer_enqueue, struct task_struct *p, u64 enq_flags)
{
	const struct cpumask *everywhere = shared_mask();
	struct task_context *task = context_of(p);
	s32 cpu = task_cpu(p);
	u32 queue;

	if (!task || !everywhere) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, options.slice_ns, enq_flags);
		return;
	}
	if (options.only_vms) {
		if (enq_flags & SCX_ENQ_REENQ) /* pushed aside by another class: its next slice is a new one */
			task->prepared = 0;
		if (task->idle_cpu && goes_to_idle(p, task, cpu, enq_flags))
			return;
	}
	/* The kernel's own per-CPU work goes first while it uses less than its share. */
	if (scheduled(p)->flags & PF_KTHREAD && scheduled(p)->nr_cpus_allowed == 1) {
		place_task(task, cpu, enq_flags & SCX_ENQ_WAKEUP);
		if (!unspin_before(clock_of(cpu), task->vtime_ns)) {
			if (preempts(task, cpu, bpf_ktime_get_ns(), false))
				enq_flags |= SCX_ENQ_PREEMPT;
			task->queue = NO_QUEUE;
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, options.slice_ns, enq_flags);
			return;
		}
	}
	if (throttle(p, task, enq_flags))
		return;
	/* Nothing else is there for this CPU, as it seemed. */
	if (enq_flags & SCX_ENQ_LAST) {
		place_task(task, task->home, false);
		task->queue = NO_QUEUE;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(task), enq_flags);
		return;
	}
	if (is_stuck(p, enq_flags)) {
		insert(p, task, cpu, enq_flags);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	if (!waits_shared(p, cpu)) {
		enqueue_on_cpu(p, task, cpu, enq_flags);
		return;
	}
	queue = shared_queue_at(cpu);
	if (task->placed == PLACED_TO_PREEMPT && task->home == queue && runs_at_once(p, task, queue, cpu, enq_flags))
		return;
	insert(p, task, queue, enq_flags);
	kick_an_idle_cpu(queue);
}

#endif
