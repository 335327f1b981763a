/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crowd.bpf.h - tasks with short runs that wait in a crowd, by the rules of policy/mechanics/crowd.h: which they are, and that one goes
 * first when its share has come so far. They wait in their queues as all others do, and may be served there before.
 */
#ifndef UNSPIN_BPF_SCHEDULER_CROWD_H
#define UNSPIN_BPF_SCHEDULER_CROWD_H

#include "slices.bpf.h"

/* Notes of tasks that are gone are looked at, and dropped, so often at one dispatch. */
#define NOTES_LOOKED_AT 4

/* Tasks that wait for that CPU: in its queue, and its part of the shared one. */
static __always_inline u64 waiting_for(s32 cpu, const struct cpu_context *there)
{
	u32 queue = shared_queue_of(there), cpus = 0;
	u64 waiting = scx_bpf_dsq_nr_queued(cpu);
	const struct cpumask *mask;

	if (!(there->flags & UNSPIN_STEER_CPU_SHARED))
		return waiting;
	mask = mask_of(queue);
	if (mask)
		cpus = bpf_cpumask_weight(mask);
	return waiting + (u32)scx_bpf_dsq_nr_queued(queue) / (cpus ?: 1);
}

/* A task that wakes up, placed, waits. If it is one of short runs in a crowd, that is noted with its CPU, whose run queue is locked. */
static __always_inline void note_share(struct task_struct *p, const struct task_context *task)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_context *there;
	u64 waiting, due_ns, clock_ns;
	u32 slot;

	if (!unspin_is_short(task->burst_ns, options.slice_ns))
		return;
	there = cpu_of(cpu);
	if (!there)
		return;
	slot = there->notes;
	if (slot >= UNSPIN_NOTES_MAX)
		return;
	waiting = waiting_for(cpu, there);
	if (waiting < UNSPIN_CROWD)
		return;
	clock_ns = clock_of(task->home) + offset_of(task->home);
	there->fair = unspin_fair_clock_now(there->fair, there->served_ns, waiting, clock_ns, options.slice_ns);
	due_ns = unspin_share_is_due(there->fair, waiting, position_of(task));
	/* In bounds: below UNSPIN_NOTES_MAX, as checked. */
	there->note[slot].due_ns = due_ns;
	there->note[slot].thread = scheduled(p)->pid;
	there->notes = slot + 1;
}

/* Takes the note that is due first out of those of this CPU; 0: none is due. */
static __always_inline u32 take_note(struct cpu_context *here)
{
	u32 notes = here->notes, first = 0, thread;
	int slot;

	if (notes > UNSPIN_NOTES_MAX)
		return 0;
	bpf_for(slot, 0, (int)notes)
	{
		/* In bounds: slot is below notes, first was such a slot. */
		if ((u32)slot < UNSPIN_NOTES_MAX &&
		    unspin_before(here->note[slot].due_ns, here->note[first & (UNSPIN_NOTES_MAX - 1)].due_ns))
			first = slot;
	}
	first &= UNSPIN_NOTES_MAX - 1;
	if (!notes || unspin_before(here->served_ns, here->note[first].due_ns))
		return 0;
	thread = here->note[first].thread;
	here->note[first] = here->note[(notes - 1) & (UNSPIN_NOTES_MAX - 1)];
	here->notes = notes - 1;
	return thread;
}

/* That thread comes to this CPU if it still waits; false: it does not, or waits for its quota. */
static __always_inline bool serve_share(s32 cpu, u32 thread, u64 now_ns)
{
	struct task_struct *p = bpf_task_from_pid(thread);
	struct task_context *task;
	bool came = false;

	if (!p)
		return false;
	task = context_of(p);
	if (task && task->queue != THROTTLED_QUEUE && !(quotas && is_throttled(task, now_ns)))
		came = fetch(cpu, p, task, slice_of(task));
	bpf_task_release(p);
	return came;
}

/* Whether a task whose share has come so far goes first on this CPU. From ops.dispatch only. */
static __always_inline bool serve_shares(s32 cpu, struct cpu_context *here, u64 now_ns)
{
	u32 thread;
	int look;

	if (!here->notes)
		return false;
	bpf_for(look, 0, NOTES_LOOKED_AT)
	{
		thread = take_note(here);
		if (!thread)
			return false;
		if (serve_share(cpu, thread, now_ns)) {
			count(unspin_steer_shares_in_crowds, 1);
			return true;
		}
	}
	return false;
}

#endif
