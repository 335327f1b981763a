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
 * That thread waits at that position, and its runs are short: a note for that CPU, whose run queue the caller has locked. Returns 0. Not
 * inlined, as clock_of().
 */
__attribute__((noinline)) int note_short(u32 cpu, u32 thread, u64 position_ns)
{
	struct cpu_context *there = cpu_of(cpu);
	u32 slot;

	if (!there)
		return 0;
	slot = unspin_note_slot(there->notes, there->replaced);
	if (slot == there->notes)
		there->notes++;
	else
		there->replaced++;
	/* In bounds by the mask, here and below: the number of slots is a power of two. */
	there->note[slot & SLOTS].position_ns = position_ns;
	there->note[slot & SLOTS].thread = thread;
	return 0;
}

/* A task that wakes up, placed, waits. */
static __always_inline void note_share(struct task_struct *p, const struct task_context *task)
{
	if (unspin_is_short(task->burst_ns, options.slice_ns))
		note_short(scx_bpf_task_cpu(p), scheduled(p)->pid, position_of(task));
}

/* unspin_crowd() of this CPU. */
static __always_inline u64 count_crowd(s32 cpu, const struct cpu_context *here)
{
	u64 own = scx_bpf_dsq_nr_queued(cpu);
	const struct cpumask *mask;

	if (!(here->flags & UNSPIN_STEER_CPU_SHARED))
		return unspin_crowd(own, 0, 1);
	mask = mask_of(shared_queue_of(here));
	return unspin_crowd(own, scx_bpf_dsq_nr_queued(shared_queue_of(here)),
			    mask ? bpf_cpumask_weight(mask) ?: 1 : 1);
}

/* Counts those who wait for this CPU, if they were counted a period ago, and brings its fair clock up to date. */
static __always_inline void advance_fair_clock(s32 cpu, struct cpu_context *here, u64 now_ns)
{
	u64 clock_ns = here->flags & UNSPIN_STEER_CPU_SHARED ? shared_clock(cpu) : here->now_ns + here->offset_ns;

	if (unspin_crowd_is_due(here->counted_ns, now_ns)) {
		here->crowd = count_crowd(cpu, here);
		here->counted_ns = now_ns;
	}
	here->fair = unspin_fair_clock_now(here->fair, here->served_ns, here->crowd, clock_ns, options.slice_ns);
}

/* Whether serve_shares() has something to do: cheap, as it is asked at each dispatch. */
static __always_inline bool may_serve_shares(const struct cpu_context *here, u64 now_ns)
{
	return here->crowd || unspin_crowd_is_due(here->counted_ns, now_ns);
}

/* Takes the note of the task that is least far of this CPU's; 0: none whose share has come so far. */
static __always_inline u32 take_note(struct cpu_context *here)
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
	if (!unspin_share_is_due(here->fair, here->note[first & SLOTS].position_ns))
		return 0;
	thread = here->note[first & SLOTS].thread;
	here->note[first & SLOTS] = here->note[(notes - 1) & SLOTS];
	here->notes = notes - 1;
	return thread;
}

/* That thread comes to this CPU if it still waits, and not for its quota, and its share has come to where it stands now. */
static __always_inline bool serve_share(s32 cpu, const struct cpu_context *here, u32 thread, u64 now_ns)
{
	struct task_struct *p = bpf_task_from_pid(thread);
	struct task_context *task;
	bool came = false;

	if (!p)
		return false;
	task = context_of(p);
	if (task && task->queue != THROTTLED_QUEUE && unspin_share_is_due(here->fair, position_of(task)) &&
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
	u32 thread;
	int look;

	if (!here)
		return 0;
	advance_fair_clock(cpu, here, now_ns);
	if (!here->crowd)
		return 0;
	bpf_for(look, 0, NOTES_LOOKED_AT)
	{
		thread = take_note(here);
		if (!thread)
			return 0;
		if (serve_share(cpu, here, thread, now_ns)) {
			count(unspin_steer_shares_in_crowds, 1);
			return 1;
		}
	}
	return 0;
}

#endif
