/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slices.bpf.h - slices as they begin, are passed on and end, by the rules of policy/mechanics/slice.h. As everywhere without a
 * high-resolution tick, a slice ends at the first tick after its end.
 */
#ifndef UNSPIN_BPF_SCHEDULER_SLICES_H
#define UNSPIN_BPF_SCHEDULER_SLICES_H

#include "ask.bpf.h"
#include "bandwidth.bpf.h"
#include "guest/audit.bpf.h"
#include "process_threads.bpf.h"

/* A debt to a thread that no longer exists is the borrower's own. */
static __always_inline bool charge_payer(u32 thread, u64 ran_ns)
{
	struct task_struct *p = bpf_task_from_pid(thread);
	struct task_context *payer;

	if (!p)
		return false;
	payer = context_of(p);
	if (payer)
		__sync_fetch_and_add(&payer->debt_ns, ran_ns);
	bpf_task_release(p);
	return payer != NULL;
}

/* Charges what the task has run since it was charged last. Its sum_exec_runtime is up to date; now_ns: the time, about. */
static __always_inline void charge(struct task_struct *p, struct task_context *task, u64 now_ns)
{
	u64 runtime_ns = scheduled(p)->se.sum_exec_runtime;
	u64 ran_ns = runtime_ns - task->charged_ns;

	task->charged_ns = runtime_ns;
	task->charged_at_ns = now_ns;
	charge_quotas(task->group, ran_ns);
	if (options.chooses && task->vcpu)
		note_sent(p, task, ran_ns);
	if (task->payer) {
		count(unspin_steer_borrowed_ns, ran_ns);
		if (charge_payer(task->payer, ran_ns))
			return;
	}
	/* While no task waits each slice of base length advances the clock; so does this long one. */
	if (task->alone && ran_ns > options.slice_ns)
		ran_ns = options.slice_ns;
	task->alone = 0;
	charge_vtime(task, ran_ns);
}

/* Its loan or grant is over: a grant's time is counted. */
static __always_inline void settle(struct task_struct *p, struct task_context *task)
{
	if (task->borrow_kind == UNSPIN_BORROWS_GRANT) {
		count(unspin_steer_granted_ns, scheduled(p)->se.sum_exec_runtime - task->borrow_charged_ns);
		notify_thread(p, task, 0);
	}
	task->borrow_kind = UNSPIN_BORROWS_NOTHING;
}

/* A slice of its own begins now. */
static __always_inline void begin_slice(struct task_struct *p, struct task_context *task, u64 now_ns)
{
	settle(p, task);
	renew_choice(p, task);
	task->answer_slices = unspin_answer_slices_left(task->answer_slices);
	task->uses_locks = unspin_uses_locks(task->lock_ns, now_ns, task->answer_slices);
	task->slice_end_ns = now_ns + slice_in_quotas(task->group, slice_of(task), now_ns);
	task->payer = 0;
	task->lender = 0;
	task->yielding = 0;
	task->boundary = 0;
	task->silent = 0;
	task->spun = 0;
	if (task->vcpu || task->page)
		policies_see_slice_start(task->choice.policies, &task->memory);
	set_clock(task);
}

/* That thread is next here, on the yielder's slice. */
static __always_inline void pass_on(struct cpu_context *here, struct task_struct *from, struct task_context *yielder,
				    u32 to, struct unspin_decision decision, u64 now_ns)
{
	u32 self = scheduled(from)->pid;

	here->next = to;
	here->next_payer = unspin_slice_payer(yielder->payer, self);
	here->next_lender = unspin_slice_lender(yielder->lender, self, decision.action == UNSPIN_LEND);
	here->next_borrow_kind = UNSPIN_BORROWS_NOTHING;
	here->next_returns = 0;
	here->next_is_buddy = 0;
	here->next_slice_end_ns = yielder->slice_end_ns;
	here->next_until_ns = unspin_called_until(now_ns);
	if (unspin_is_lock_loan(decision.action, decision.budget_ns))
		yielder->lock_ns = now_ns;
	if (decision.action == UNSPIN_LEND) {
		count(unspin_steer_lent, 1);
		here->next_borrow_kind = UNSPIN_BORROWS_LOAN;
		here->next_budget_ns = decision.budget_ns;
	}
	yielder->lender = 0;
}

/* The loan ends: its lender is next on this CPU, if the slice returns. The caller holds the lock of the CPU's run queue. */
static __always_inline void return_to_lender(struct cpu_context *here, struct task_context *borrower, u64 now_ns)
{
	u32 lender = borrower->lender;

	borrower->lender = 0;
	if (!unspin_slice_returns(unspin_slice_left(borrower->slice_end_ns, now_ns)))
		return;
	here->next = lender;
	here->next_payer = 0;
	here->next_lender = 0;
	here->next_borrow_kind = UNSPIN_BORROWS_NOTHING;
	here->next_returns = 1;
	here->next_is_buddy = 0;
	here->next_slice_end_ns = borrower->slice_end_ns;
	here->next_until_ns = unspin_called_until(now_ns);
}

/* What `task` was given with its slice. */
static __always_inline void take_over(struct cpu_context *here, struct task_struct *p, struct task_context *task,
				      u64 now_ns)
{
	task->payer = here->next_payer;
	task->lender = here->next_lender;
	task->borrow_kind = here->next_borrow_kind;
	task->budget_ns = here->next_budget_ns;
	task->borrowed_since_ns = now_ns;
	task->slice_end_ns = here->next_slice_end_ns;
	task->prepared = 1;
	task->yielding = 0;
	task->silent = 0;
	if (here->next_returns)
		return;
	task->spun = 0;
	if (task->borrow_kind == UNSPIN_BORROWS_LOAN && unspin_is_lock_loan(UNSPIN_LEND, task->budget_ns))
		task->lock_ns = now_ns;
	if (task->borrow_kind == UNSPIN_BORROWS_NOTHING)
		policies_see_slice_start(task->choice.policies, &task->memory);
}

/*
 * Whether p, which waits, may be moved to that CPU. One that was preempted inside a migrate_disable() may not, and its
 * cpus_ptr shows that a moment late: the kernel removes a scheduler that tries (task_can_run_on_remote_rq(),
 * kernel/sched/ext/ext.c, Linux 7.2).
 */
static __always_inline bool may_run_on(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, scheduled(p)->cpus_ptr) &&
	       (!scheduled(p)->migration_disabled || task_cpu(p) == cpu);
}

/*
 * Moves p, for so long, from the queue where it waits to this CPU; false if it does not wait any more, or may not run here.
 * From ops.dispatch only.
 */
static __always_inline bool fetch(s32 cpu, struct task_struct *p, const struct task_context *task, u64 slice_ns)
{
	struct bpf_iter_scx_dsq queue;
	bool moved = false;

	/* A task that comes into the queue after this is not moved: so what is checked of p here still holds then. */
	if (bpf_iter_scx_dsq_new(&queue, task->queue, 0) == 0 && may_run_on(p, cpu)) {
		scx_bpf_dsq_move_set_slice(&queue, slice_ns);
		moved = scx_bpf_dsq_move(&queue, p, SCX_DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&queue);
	return moved;
}

/* Moves the thread that a slice was passed on to to this CPU, for the rest of it; false: it could not be moved. */
static __always_inline bool run_next(s32 cpu, struct cpu_context *here, struct task_struct *p,
				     struct task_context *task, u64 now_ns)
{
	u64 left_ns = unspin_slice_left(here->next_slice_end_ns, now_ns);
	u64 slice_ns = unspin_slice_length(left_ns, here->next_borrow_kind, here->next_budget_ns);

	if (!fetch(cpu, p, task, slice_ns))
		return false;
	take_over(here, p, task, now_ns);
	return true;
}

#endif
