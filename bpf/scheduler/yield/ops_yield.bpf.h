/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ops_yield.bpf.h - ops.yield: sched_yield(), and KVM's yield_to() in a pause-loop exit or for a guest's KVM_HC_SCHED_YIELD.
 *
 * Under the locks of the run queues of both tasks, with interrupts off (yield_to(), kernel/sched/syscalls.c, Linux 7.2).
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_OPS_YIELD_H
#define UNSPIN_BPF_SCHEDULER_YIELD_OPS_YIELD_H

#include "../guest/pending_interrupts.bpf.h"
#include "spin.bpf.h"

/* What the policies that are on decide about KVM's request; REFUSE where none may touch these vCPUs. */
static __always_inline struct unspin_decision ask(struct task_struct *from, struct task_context *yielder,
						  struct task_struct *to, u64 now_ns)
{
	struct task_context *target = context_of(to);
	struct unspin_facts facts; /* all of it is gathered */
	u32 policies = yielder->choice.policies;

	if (!target || !policies || !yielder->steered || !target->steered)
		return unspin_decide(UNSPIN_REFUSE, 0);
	/* Few policies read more of the candidate, or what the yielder is doing: that, as seen last, with its age. */
	if (policies & UNSPIN_POLICIES_OF_CANDIDATE || options.log_decisions) {
		gather_candidate(&facts.candidate, to, target, now_ns);
	} else {
		vcpu_is_unknown(&facts.candidate);
		facts.candidate.descheduled = descheduled(target, now_ns);
		facts.candidate.awaits = awaits_lately(target);
	}
	if (yielder->names)
		facts.candidate.awaited = fact_seen(UNSPIN_AWAITED_BY_SELF, now_ns, now_ns);
	else if (policies_read_answers(policies, &facts.candidate) && has_interrupt(target))
		facts.candidate.awaited =
			(struct unspin_fact){UNSPIN_AWAITED_BY_SOMEBODY, facts.candidate.descheduled.age_ns};
	note_answers(yielder, &facts.candidate);
	if (policies & UNSPIN_POLICIES_OF_YIELDER || options.log_decisions)
		gather(&facts.self, yielder, yielder->left_ns, now_ns);
	else
		vcpu_is_unknown(&facts.self);
	facts_of_slice(&facts, yielder, now_ns);
	gather_order(&facts.order, yielder, to, target, now_ns);
	return decide(UNSPIN_ON_YIELD, from, yielder, &facts, scheduled(to)->pid, now_ns);
}

/*
 * KVM proposes that one, the policies decide: whether a thread is next here, for which the yielder shall leave. Not inlined: its facts
 * need not be on the stack where rule_chooses() calls consider().
 */
static __noinline bool heed_kvm(struct cpu_context *here, struct task_struct *from, struct task_context *yielder,
				struct task_struct *to)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct unspin_decision decision;

	yielder->spun++;
	decision = unspin_within_slice(yielder->borrow_kind, ask(from, yielder, to, now_ns));
	if (make_next(here, from, yielder, scheduled(to)->pid, decision, now_ns))
		return true;
	count(unspin_steer_refused, 1);
	return false;
}

/* Returns whether the yield is honoured: then yield_to() (kernel/sched/syscalls.c) calls the scheduler. */
SEC("struct_ops/yield")
bool BPF_PROG(steer_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_context *yielder = context_of(from);
	struct cpu_context *here = cpu_of(bpf_get_smp_processor_id());
	bool leaves;

	if (!yielder || !here)
		return false;
	if (!to) {
		count(unspin_steer_yields, 1);
		/* A vCPU gives back by a hypercall, a thread like this. */
		count(unspin_steer_given_back, yielder->page && yielder->borrow_kind == UNSPIN_BORROWS_GRANT);
		yielder->yielding = 1;
		scx_bpf_task_set_slice(from, 0);
		return false;
	}
	count(unspin_steer_directed, 1);
	renew_choice(from, yielder);
	/* Inside a pause-loop exit the rule chooses, once, whichever vCPU KVM proposes. */
	if (options.chooses && yielder->on_spin && yielder->steered &&
	    yielder->choice.policies & UNSPIN_POLICY_CANDIDATES) {
		count(unspin_steer_superseded, 1);
		leaves = yielder->on_spin == ON_SPIN_BEGUN && rule_chooses(from, yielder);
	} else {
		leaves = heed_kvm(here, from, yielder, to);
	}
	if (!leaves)
		return false;
	yielder->yielding = 1;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

#endif
