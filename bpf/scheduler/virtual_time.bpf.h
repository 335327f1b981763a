/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * virtual_time.bpf.h - virtual times of tasks and clocks of queues, by the rules of policy/mechanics/virtual_time.h: here is which
 * queue has which clock, which CPUs serve it, and what other CPUs change meanwhile.
 */
#ifndef UNSPIN_BPF_SCHEDULER_VIRTUAL_TIME_H
#define UNSPIN_BPF_SCHEDULER_VIRTUAL_TIME_H

#include "domains/queues.bpf.h"
#include "../../policy/mechanics/crowd.h"

/*
 * Whether it was preempted inside a migrate_disable(). BPF programs on tracepoints are such places: a guest that makes hypercalls
 * without end is preempted there again and again. The current task's count includes what the running BPF programs have added: one
 * for this program; two if ops.cpu_release() called it by scx_bpf_reenqueue_local(), which enqueues at once (kernel/sched/ext.c,
 * Linux 7.2). What scx_bpf_dsq_reenq() enqueues later is not the current task.
 */
static __always_inline bool is_stuck(struct task_struct *p, u64 enq_flags)
{
	u32 ours = 0;

	if (p == bpf_get_current_task_btf())
		ours = enq_flags & SCX_ENQ_REENQ ? 2 : 1;
	return scheduled(p)->migration_disabled > ours;
}

/* A task was inserted into that queue. An idle CPU takes it; on a CPU without a tick this ends the slice of the running task. */
static __always_inline void kick_for(u32 queue)
{
	struct cpu_context *there = cpu_of(queue);

	if (there)
		scx_bpf_kick_cpu(queue, there->flags & UNSPIN_STEER_CPU_NOHZ_FULL ? SCX_KICK_PREEMPT : SCX_KICK_IDLE);
	else
		kick_an_idle_cpu(queue);
}

/* The clock of a domain's shared queue. */
static __always_inline u64 shared_clock(u32 queue)
{
	struct domain *domain = domain_of(queue);

	return domain ? domain->now_ns : 0;
}

/*
 * The clock of a queue; racing CPUs may set it back by a slice. Not inlined, and not static, as between_domains(): the verifier
 * goes through it once.
 */
__attribute__((noinline)) u64 clock_of(u32 queue)
{
	struct cpu_context *there = cpu_of(queue);

	return there ? there->now_ns : shared_clock(queue);
}

/* What is added to vtimes of that queue where they are compared with others of its domain. */
static __always_inline u64 offset_of(u32 queue)
{
	struct cpu_context *there = cpu_of(queue);

	return there ? there->offset_ns : 0;
}

/* Where the task has come, comparable with others of its domain. */
static __always_inline u64 position_of(const struct task_context *task)
{
	return task->vtime_ns + offset_of(task->home);
}

/* What is added to a position in the domain of one queue for one in that of the other: 0 within a domain. */
__attribute__((noinline)) u64 between_domains(u32 from, u32 to)
{
	struct domain *one, *other;

	if (options.domains < 2)
		return 0;
	from = shared_queue_for(from);
	to = shared_queue_for(to);
	if (from == to)
		return 0;
	one = domain_of(from);
	other = domain_of(to);
	return one && other ? one->offset_ns - other->offset_ns : 0;
}

/* How far a task may be behind for its domain: unspin_domain_lag(); 0 where there is one domain. */
static __always_inline u64 domain_lag(void)
{
	return options.domains > 1 ? unspin_domain_lag(options.slice_ns) : 0;
}

/* The clock by which a task is placed in that queue. Not inlined, as clock_of(). */
__attribute__((noinline)) u64 placing_clock(u32 queue)
{
	struct cpu_context *there = cpu_of(queue);
	u64 now_ns, abreast_ns;

	if (!there)
		return shared_clock(queue);
	now_ns = there->now_ns;
	abreast_ns = unspin_abreast(shared_clock(queue), there->offset_ns);
	/* The number that wait is read only where it matters. */
	return unspin_placing_clock(now_ns, abreast_ns,
				    unspin_before(now_ns, abreast_ns) && scx_bpf_dsq_nr_queued(queue) == 0);
}

/* The clock by which a task is placed in that queue that wakes up or is new; now_ns: the queue's. Not inlined, as clock_of(). */
__attribute__((noinline)) u64 crowd_clock(u32 queue, u64 now_ns)
{
	struct cpu_context *there = cpu_of(queue);
	struct domain *domain = domain_numbered((there ? shared_queue_of(there) : queue) - SHARED_QUEUE);
	u64 offset_ns = there ? there->offset_ns : 0;

	return domain ? unspin_crowd_clock(now_ns, domain->fair_ns - offset_ns, options.slice_ns) : now_ns;
}

/* The task is placed in a queue, possibly again; `wakes`: from sleep. */
static __always_inline void place_task(struct task_context *task, u32 queue, bool wakes)
{
	u64 weight = effective_weight(task), now_ns;
	u64 debt_ns = __sync_lock_test_and_set(&task->debt_ns, 0);

	if (task->home != queue) {
		task->vtime_ns = unspin_moved_vtime(task->vtime_ns, offset_of(task->home), offset_of(queue)) +
				 between_domains(task->home, queue);
		task->home = queue;
	}
	now_ns = placing_clock(queue);
	task->vtime_ns = unspin_place_vtime(task->vtime_ns, weight, debt_ns, now_ns - domain_lag(), options.slice_ns);
	if (wakes) {
		task->effective = weight;
		task->vtime_ns = unspin_wake_vtime(task->vtime_ns, weight, task->lag_ns, task->burst_ns,
						   crowd_clock(queue, now_ns), options.slice_ns);
	}
}

/*
 * The virtual time of a task of that queue when it has run so much more; a queue of one CPU stands so much further (a loan may run on
 * another CPU of the domain: a sum that is lost then is a slice at most). Not inlined, as clock_of().
 */
__attribute__((noinline)) u64 charged_vtime(u64 vtime_ns, u64 weight, u64 ran_ns, u32 queue)
{
	struct cpu_context *there = cpu_of(queue), *here = cpu_of(bpf_get_smp_processor_id());
	u64 clock_ns = there ? there->now_ns : shared_clock(queue);

	if (here)
		here->ran_ns += ran_ns;
	if (there)
		there->standing_ns += unspin_weighted(weight, ran_ns);
	return unspin_charge_vtime(vtime_ns, weight, ran_ns, clock_ns - domain_lag(), options.slice_ns);
}

/* The task has run so much more. */
static __always_inline void charge_vtime(struct task_context *task, u64 ran_ns)
{
	u64 weight = effective_weight(task);

	task->effective = weight;
	ran_ns += __sync_lock_test_and_set(&task->debt_ns, 0);
	task->vtime_ns = charged_vtime(task->vtime_ns, weight, ran_ns, task->home);
}

/* The task, charged, goes to sleep. */
static __always_inline void note_sleep(struct task_struct *p, struct task_context *task)
{
	u64 runtime_ns = scheduled(p)->se.sum_exec_runtime;

	task->burst_ns = unspin_expected_burst(task->burst_ns, runtime_ns - task->slept_ns, options.slice_ns);
	task->mean_ns = unspin_mean_burst(task->mean_ns, runtime_ns - task->slept_ns, options.slice_ns);
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

/* A new task, which goes by the clock of the shared queue here at first. */
static __always_inline void start(struct task_context *task)
{
	task->home = shared_queue_at(bpf_get_smp_processor_id());
	task->effective = effective_weight(task);
	task->burst_ns = options.slice_ns;
	task->mean_ns = options.slice_ns;
	task->vtime_ns = unspin_start_vtime(crowd_clock(task->home, shared_clock(task->home)), task->effective,
					    options.slice_ns);
}

/* A domain's clock has moved on: where it stands among others. `waits`: a task waits in its queue. */
static __always_inline void set_standing(struct domain *domain, bool waits)
{
	u64 first_ns = first_standing_ns, ours_ns, offset_ns = domain->offset_ns;

	if (!waits) {
		offset_ns = unspin_offset_without_claim(domain->now_ns, offset_ns, first_ns, options.slice_ns);
		if (offset_ns != domain->offset_ns)
			domain->offset_ns = offset_ns;
	}
	ours_ns = unspin_first_standing(first_ns, unspin_standing(domain->now_ns, offset_ns), options.slice_ns);
	if (ours_ns != first_ns)
		first_standing_ns = ours_ns;
}

/* A task of that CPU's queue begins a slice. Returns 0. Not inlined, as clock_of(). */
__attribute__((noinline)) int set_own_clock(u32 cpu, u64 vtime_ns)
{
	struct cpu_context *there = cpu_of(cpu);
	struct domain *domain = domain_of(cpu);
	struct task_struct *first = scx_bpf_dsq_peek(cpu);
	u64 first_ns = first ? scheduled(first)->scx.dsq_vtime : 0, now_ns;
	bool alone;

	if (!there || !domain)
		return 0;
	now_ns = unspin_advance_clock(there->now_ns, vtime_ns, first != NULL, first_ns);
	if (now_ns != there->now_ns)
		there->now_ns = now_ns;
	alone = there->flags & UNSPIN_STEER_CPU_SHARED && !first && scx_bpf_dsq_nr_queued(shared_queue_of(there)) == 0;
	if (alone)
		there->offset_ns = unspin_offset_abreast(domain->now_ns, there->now_ns);
	there->standing_ns = unspin_own_standing(there->standing_ns, alone, first_standing_ns, options.slice_ns);
	return 0;
}

/* The task begins a slice. */
static __always_inline void set_clock(const struct task_context *task)
{
	struct task_struct *first;
	struct domain *domain;
	u64 first_ns, now_ns;

	if (task->home < SHARED_QUEUE) {
		set_own_clock(task->home, task->vtime_ns);
		return;
	}
	domain = domain_of(task->home);
	if (!domain)
		return;
	/* It is not set back, whoever waits. */
	if (options.domains < 2 && !unspin_before(domain->now_ns, task->vtime_ns))
		return;
	first = scx_bpf_dsq_peek(task->home);
	first_ns = first ? scheduled(first)->scx.dsq_vtime : 0;
	/* A clock that stays is not written: other CPUs use its cache line. */
	now_ns = unspin_advance_clock(domain->now_ns, task->vtime_ns, first != NULL, first_ns);
	if (now_ns != domain->now_ns)
		domain->now_ns = now_ns;
	if (options.domains > 1)
		set_standing(domain, first != NULL);
}

/* The task runs on that CPU, which may be of another domain than the queue where it waited: it is placed by the clock there. */
static __always_inline void come_home(struct task_context *task, const struct cpu_context *here)
{
	u32 queue = shared_queue_of(here);

	if (options.domains > 1 && shared_queue_for(task->home) != queue)
		place_task(task, queue, false);
}

#endif
