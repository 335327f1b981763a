/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ask.bpf.h - calls the policies, and logs their decisions.
 *
 * Callable from every program of the scheduler and from its timers; nothing here blocks.
 */
#ifndef UNSPIN_BPF_SCHEDULER_ASK_H
#define UNSPIN_BPF_SCHEDULER_ASK_H

#include "state.bpf.h"

/*
 * What the policies answer. The three below are not inlined, and not static: the verifier walks through the policies once for
 * each, and only in programs that call it, not for everything that may be known there (steer_yield alone was 148,000 instructions to
 * it). This one is for a yield, of which they say most.
 */
__attribute__((noinline)) int answer_to_yield(u32 policies, const struct unspin_facts *facts,
					      struct unspin_policy_memory *memory, struct unspin_decision *decision)
{
	if (facts && memory && decision)
		*decision = policies_on_yield(policies, facts, memory);
	return 0;
}

/* Any other event. */
__attribute__((noinline)) int answer(u32 event, u32 policies, const struct unspin_facts *facts,
				     struct unspin_policy_memory *memory, struct unspin_decision *decision)
{
	if (event != UNSPIN_ON_YIELD && facts && memory && decision)
		*decision = policies_decide(event, policies, facts, memory);
	return 0;
}

/* A slice begins for the vCPU that has that memory. */
__attribute__((noinline)) int policies_see_slice_start(u32 policies, struct unspin_policy_memory *memory)
{
	struct unspin_facts nothing = {};

	if (memory)
		policies_on_slice_start(policies, &nothing, memory);
	return 0;
}

static __always_inline void answer_to(u32 event, struct task_context *task, const struct unspin_facts *facts,
				      struct unspin_decision *decision)
{
	if (event == UNSPIN_ON_YIELD)
		answer_to_yield(task->choice.policies, facts, &task->memory, decision);
	else
		answer(event, task->choice.policies, facts, &task->memory, decision);
}

/* Calls the policies, and logs facts and decision if options.log_decisions is set. event: a constant. */
static __always_inline struct unspin_decision decide(u32 event, struct task_struct *p, struct task_context *task,
						     const struct unspin_facts *facts, u32 candidate, u64 now_ns)
{
	struct unspin_decision_record *record = NULL;
	struct unspin_decision decision = {};

	if (options.log_decisions) {
		record = bpf_ringbuf_reserve(&decisions, sizeof(*record), 0);
		if (!record)
			count(unspin_steer_unlogged, 1);
	}
	if (!record) {
		answer_to(event, task, facts, &decision);
		return decision;
	}
	record->time_ns = now_ns;
	record->thread = scheduled(p)->pid;
	record->candidate = candidate;
	record->event = event;
	record->policies = task->choice.policies;
	record->facts = *facts;
	record->before = task->memory;
	answer_to(event, task, facts, &decision);
	record->after = task->memory;
	record->decision = decision;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return decision;
}

#endif
