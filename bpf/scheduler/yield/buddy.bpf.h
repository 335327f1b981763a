/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * buddy.bpf.h - a directed yield as a yield buddy (policy/steering/yield_buddy.h): the candidate begins a slice of its own, out of the
 * order of virtual times, unless that is too unfair.
 *
 * The yielder is charged for what it ran only when it leaves its CPU, so whether the yield buddy is followed is seen there, in
 * ops.dispatch, by policy/mechanics/buddy.h.
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_BUDDY_H
#define UNSPIN_BPF_SCHEDULER_YIELD_BUDDY_H

#include "../guest/vcpus.bpf.h"
#include "../../../policy/mechanics/buddy.h"
#include "../../../policy/mechanics/order.h"

/* What the task has run since it was charged; sum_exec_runtime is as old as the last tick. */
static __always_inline u64 uncharged_ns(const struct task_context *task, u64 now_ns)
{
	if (!task->on_cpu || task->payer || unspin_before(now_ns, task->charged_at_ns))
		return 0;
	return now_ns - task->charged_at_ns;
}

static __always_inline struct unspin_order_place order_place(const struct task_context *task)
{
	return (struct unspin_order_place){task->vtime_ns, task->effective, task->home, task->group};
}

/* How the two stand in their queue (policy/mechanics/order.h), as far as a policy that is on reads it. It is unknown so far. */
static __always_inline void gather_order(struct unspin_order_facts *order, const struct task_context *yielder,
					 struct task_struct *to, const struct task_context *target, u64 now_ns)
{
	bool waits = target->counted && !target->on_cpu && target->queue == target->home;
	struct unspin_order_place self = order_place(yielder), candidate = order_place(target);
	u32 policies = yielder->choice.policies;

	if (!(policies & UNSPIN_POLICIES_OF_ORDER))
		return;
	unspin_order_of_candidate(order, &self, &candidate, waits);
	if (policies & UNSPIN_POLICIES_OF_SELF)
		unspin_order_of_self(order, &self, &candidate, uncharged_ns(yielder, now_ns) + yielder->debt_ns);
	/* Not by the queue's number, a hash table's key. The candidate may leave its queue just now: then 0 is read. */
	if (policies & UNSPIN_POLICIES_OF_QUEUE)
		unspin_order_of_queue(order, &candidate, clock_of(target->home), scheduled(to)->scx.dsq->nr,
				      options.slice_ns);
}

/* That thread shall be next here, with a slice of its own. */
static __always_inline void set_buddy(struct cpu_context *here, struct task_context *yielder, u32 to,
				      struct unspin_decision decision, u64 now_ns)
{
	count(unspin_steer_yield_buddies, 1);
	if (decision.raise_ns)
		count(unspin_steer_deboosted, 1);
	yielder->vtime_ns += decision.raise_ns;
	here->next = to;
	here->next_borrow_kind = UNSPIN_BORROWS_NOTHING;
	here->next_returns = 0;
	here->next_is_buddy = 1;
	here->next_threshold_ns = decision.budget_ns;
	here->next_credit_ns = decision.credit_ns;
	here->next_until_ns = unspin_called_until(now_ns);
}

/*
 * That thread shall be next here, as a policy has decided when the yielder spun, or none in particular (GIVE_BACK). False:
 * nothing is done. The caller holds the lock of this CPU's run queue, or runs here with interrupts off.
 */
static __always_inline bool make_next(struct cpu_context *here, struct task_struct *from, struct task_context *yielder,
				      u32 to, struct unspin_decision decision, u64 now_ns)
{
	if (decision.action == UNSPIN_GIVE_BACK)
		count(unspin_steer_given_back, 1);
	else if (decision.action == UNSPIN_DIRECT || decision.action == UNSPIN_LEND)
		pass_on(here, from, yielder, to, decision, now_ns);
	else if (decision.action == UNSPIN_YIELD_BUDDY)
		set_buddy(here, yielder, to, decision, now_ns);
	else
		return false;
	yielder->yielded_ns = now_ns;
	return true;
}

/* The least position of the tasks that wait for this CPU, `otherwise` where none does. */
static __always_inline u64 least_waiting(s32 cpu, const struct cpu_context *here, u64 otherwise)
{
	struct task_struct *own = scx_bpf_dsq_peek(cpu), *common = NULL;
	u64 least_ns = otherwise;

	if (here->flags & UNSPIN_STEER_CPU_SHARED)
		common = scx_bpf_dsq_peek(shared_queue_of(here));
	if (common)
		least_ns = scheduled(common)->scx.dsq_vtime;
	if (own &&
	    !unspin_shared_is_first(true, scheduled(own)->scx.dsq_vtime + here->offset_ns, common != NULL, least_ns))
		least_ns = scheduled(own)->scx.dsq_vtime + here->offset_ns;
	return least_ns;
}

/* p has that virtual time from now on, in the queue where it waits, if it still does. */
static __always_inline void place(s32 cpu, struct task_struct *p, struct task_context *task, u64 vtime_ns)
{
	struct bpf_iter_scx_dsq queue;

	/* As in fetch(). */
	if (bpf_iter_scx_dsq_new(&queue, task->queue, 0) == 0 && may_run_on(p, cpu)) {
		scx_bpf_dsq_move_set_vtime(&queue, vtime_ns);
		if (scx_bpf_dsq_move_vtime(&queue, p, task->queue, 0))
			task->vtime_ns = vtime_ns;
	}
	bpf_iter_scx_dsq_destroy(&queue);
}

/*
 * Moves the candidate of a yield buddy, wherever it waits, to this CPU to begin a slice of its own; if that is too unfair it stays in
 * its queue, with its virtual time. `yielder`: prev, charged; NULL if it is not runnable. False: it was not moved.
 */
static __always_inline bool follow_yield_buddy(s32 cpu, struct cpu_context *here, struct task_struct *p,
					       struct task_context *task, struct task_context *yielder)
{
	u64 vtime_ns = task->vtime_ns - here->next_credit_ns;
	u64 position_ns = vtime_ns + offset_of(task->home) + between_domains(task->home, shared_queue_of(here));
	struct unspin_buddy_places places = {
		.candidate_ns = position_ns,
		.waiting_ns = least_waiting(cpu, here, position_ns),
		.yielder_ns = yielder ? position_of(yielder) : 0,
		.yielder_runnable = yielder != NULL,
		.threshold_ns = here->next_threshold_ns,
	};
	u32 outcome = unspin_buddy_outcome(&places);

	if (outcome != UNSPIN_BUDDY_RUNS) {
		if (here->next_credit_ns)
			place(cpu, p, task, vtime_ns);
		count(unspin_steer_yield_buddy_too_unfair, 1);
		if (yielder)
			yielder->yielding = outcome == UNSPIN_BUDDY_OTHERS_RUN;
		return false;
	}
	if (!fetch(cpu, p, task, slice_of(task))) {
		count(unspin_steer_missed, 1);
		return false;
	}
	task->vtime_ns = vtime_ns;
	count(unspin_steer_yield_buddy_followed, 1);
	return true;
}

#endif
