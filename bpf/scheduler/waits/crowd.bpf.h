/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crowd.bpf.h - tasks with short runs that wait in a crowd, by the rules of policy/mechanics/crowd.h: which they are, and that one goes
 * first when its share has come so far. They wait in their queues as all others do, and may be served there before.
 */
#ifndef UNSPIN_BPF_SCHEDULER_WAITS_CROWD_H
#define UNSPIN_BPF_SCHEDULER_WAITS_CROWD_H

#include "../slices.bpf.h"

/*
 * So many notes are looked at in one dispatch; those of tasks that are gone, or have run since, are dropped. The oldest come first, so
 * that a task may wait for UNSPIN_CROWD_NOTES / 4 dispatches more. The lab looks at all. Ours.
 */
#define NOTES_LOOKED_AT 4
#define SLOTS (UNSPIN_CROWD_NOTES - 1)

/*
 * The task, placed, waits: it has woken up, was preempted, or has come from a CPU that goes off. If its runs are short, a note for that
 * CPU, whose run queue the caller has locked. Returns 0. Not inlined, as clock_of().
 */
__attribute__((noinline)) int note_share(const struct task_context *task __arg_nonnull, u32 cpu, u32 thread)
{
	struct cpu_context *there;
	u32 slot;

	if (!unspin_is_short(task->mean_ns, options.slice_ns))
		return 0;
	there = cpu_of(cpu);
	if (!there)
		return 0;
	slot = unspin_note_slot(there->notes, there->written);
	there->written++;
	if (slot == there->notes)
		there->notes++;
	/* In bounds by the mask, here and below: the number of slots is a power of two. */
	there->note[slot & SLOTS].position_ns = position_of(task);
	there->note[slot & SLOTS].thread = thread;
	return 0;
}

/*
 * Counts those who wait for this CPU if they were counted a period ago. The fair clock of a domain without a crowd is set to its
 * queue's.
 */
static __always_inline void count_crowd(s32 cpu, struct cpu_context *here, struct domain *domain, u64 now_ns)
{
	u64 shared = scx_bpf_dsq_nr_queued(shared_queue_of(here));

	here->crowd = unspin_is_crowd(scx_bpf_dsq_nr_queued(cpu), shared, domain->online);
	here->counted_ns = now_ns;
	/* What is as it should be is not written: other CPUs use its cache line. */
	if (here->crowd)
		domain->crowd_ns = now_ns;
	else if (domain->fair_ns != domain->now_ns && unspin_crowd_is_over(domain->crowd_ns, now_ns))
		domain->fair_ns = domain->now_ns;
}

/* The domain's fair clock goes on by what this CPU, where a crowd waits, has run. */
static __always_inline void advance_fair_clock(struct cpu_context *here, struct domain *domain)
{
	u64 clock_ns = domain->now_ns, fair_ns = domain->fair_ns, share_ns, bounded_ns;
	struct group *root = group_at(ROOT_GROUP);

	if (!root)
		return;
	/* Without the lock: the sum is read once. */
	share_ns = unspin_fair_share(here->ran_ns - here->shared_ran_ns, *(volatile s64 *)&root->active.sum,
				     cpus_online, domain->online);
	here->shared_ran_ns = here->ran_ns;
	share_ns = unspin_fair_advance(fair_ns, share_ns, clock_ns, options.slice_ns);
	fair_ns = __sync_fetch_and_add(&domain->fair_ns, share_ns) + share_ns;
	bounded_ns = unspin_fair_bounded(fair_ns, clock_ns, options.slice_ns);
	if (bounded_ns != fair_ns)
		domain->fair_ns = bounded_ns;
}

/* Whether serve_shares() has something to do: cheap, as it is asked at each dispatch. */
static __always_inline bool may_serve_shares(const struct cpu_context *here, u64 now_ns)
{
	return here->crowd || unspin_crowd_is_due(here->counted_ns, now_ns);
}

/* Takes the note of the task that is least far of this CPU's; 0: none whose share has come so far. */
static __always_inline u32 take_note(struct cpu_context *here, u64 fair_ns)
{
	u32 notes = here->notes, first = 0, thread;
	int slot;

	if (!notes || notes > UNSPIN_CROWD_NOTES)
		return 0;
	bpf_for(slot, 0, (int)notes)
	{
		if (unspin_before(here->note[slot & SLOTS].position_ns, here->note[first & SLOTS].position_ns))
			first = slot;
	}
	if (!unspin_share_is_due(fair_ns, here->note[first & SLOTS].position_ns))
		return 0;
	thread = here->note[first & SLOTS].thread;
	here->note[first & SLOTS] = here->note[(notes - 1) & SLOTS];
	here->notes = notes - 1;
	return thread;
}

/* That thread comes to this CPU if it still waits, and not for its quota, and its share has come to where it stands now. */
static __always_inline bool serve_share(s32 cpu, u64 fair_ns, u32 thread, u64 now_ns)
{
	struct task_struct *p = bpf_task_from_pid(thread);
	struct task_context *task;
	bool came = false;

	if (!p)
		return false;
	task = context_of(p);
	if (task && task->queue != THROTTLED_QUEUE && unspin_share_is_due(fair_ns, position_of(task)) &&
	    !(quotas && is_throttled(task, now_ns)))
		came = fetch(cpu, p, task, slice_of(task));
	bpf_task_release(p);
	return came;
}

/*
 * Whether a task whose share has come so far goes first on this CPU: 1 or 0. From ops.dispatch only, if may_serve_shares(). Not inlined,
 * and not static: the verifier goes through it once.
 */
__attribute__((noinline)) int serve_shares(s32 cpu, u64 now_ns)
{
	struct cpu_context *here = cpu_of(cpu);
	struct domain *domain;
	u32 thread;
	int look;

	/* An isolated CPU has the tasks of its own queue alone, in their order. */
	if (!here || !(here->flags & UNSPIN_STEER_CPU_SHARED))
		return 0;
	domain = domain_of(shared_queue_of(here));
	if (!domain)
		return 0;
	if (unspin_crowd_is_due(here->counted_ns, now_ns))
		count_crowd(cpu, here, domain, now_ns);
	if (!here->crowd) {
		here->shared_ran_ns = here->ran_ns;
		return 0;
	}
	advance_fair_clock(here, domain);
	bpf_for(look, 0, NOTES_LOOKED_AT)
	{
		thread = take_note(here, domain->fair_ns);
		if (!thread)
			return 0;
		if (serve_share(cpu, domain->fair_ns, thread, now_ns)) {
			count(unspin_steer_shares_in_crowds, 1);
			return 1;
		}
	}
	return 0;
}

#endif
