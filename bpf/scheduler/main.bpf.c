// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - a complete scheduler for every task of the host, and the hooks where policies decide.
 *
 * One queue, ordered by weighted virtual time (policy/mechanics/weights.h), serves all CPUs that share a last-level cache and are
 * not isolated. Tasks that may not run on all of these wait in a queue of one CPU. A CPU takes the head with the least vtime of
 * its own queue and the shared one, and keeps the task that runs when none has less; where none waits, or others are behind, it
 * takes one of another cache's (domains/take.bpf.h). Nothing else is searched for: heads are peeked at, and a vCPU that a slice is
 * passed on to is moved out of its queue by name. Real-time tasks are not sched_ext's.
 *
 * Callbacks run under the lock of the run queue concerned with interrupts off, unless they end in `.s` (Linux 7.2,
 * kernel/sched/ext/ext.c). Every map value is checked for NULL before use, arguments are typed by BTF; memory of guests
 * and of KVM goes through safe reads.
 */
#include "cpus.bpf.h"
#include "domains/take.bpf.h"
#include "dump.bpf.h"
#include "yield/gang.bpf.h"
#include "kvm.bpf.h"
#include "waits/starvation_bound.bpf.h"
#include "only_vms/taken_cpus.bpf.h"
#include "yield/ops_yield.bpf.h"

char program_license[] SEC("license") = "GPL";

/* prev continues with a slice of its own. */
static __always_inline void keep(s32 cpu, struct task_struct *prev, struct task_context *task, struct cpu_context *here,
				 bool alone, u64 now_ns)
{
	begin_slice(prev, task, now_ns);
	task->alone = alone && here->flags & UNSPIN_STEER_CPU_NOHZ_FULL && !has_quota(task, now_ns);
	scx_bpf_task_set_slice(prev, task->alone ? SCX_SLICE_INF : slice_of(task));
	occupy(here, task);
	end_slice_on_time(cpu, here, task, now_ns);
	gang(prev, task, now_ns);
}

/* The least vtime of this CPU's queue, the shared queue and prev; false: there is none. */
static __always_inline bool run_least(s32 cpu, struct cpu_context *here, struct task_struct *prev,
				      struct task_context *task, u64 now_ns)
{
	struct task_struct *own = scx_bpf_dsq_peek(cpu), *common = NULL;
	u32 queue = shared_queue_of(here);
	u64 own_ns = 0, common_ns = 0, best_ns;
	bool shared_first;

	if (here->flags & UNSPIN_STEER_CPU_SHARED)
		common = scx_bpf_dsq_peek(queue);
	if (common)
		common_ns = scheduled(common)->scx.dsq_vtime;
	if (own) {
		own_ns = scheduled(own)->scx.dsq_vtime + here->offset_ns;
		if (common)
			own_ns += align(here, own, own_ns, common, common_ns);
	}
	shared_first = unspin_shared_is_first(own != NULL, own_ns, common != NULL, common_ns);
	best_ns = shared_first ? common_ns : own_ns;
	if (own || common)
		here->front_ns = best_ns;
	if (prev && task && !task->yielding && (!(own || common) || unspin_before(position_of(task), best_ns))) {
		here->front_ns = position_of(task);
		keep(cpu, prev, task, here, !own && !common, now_ns);
		return true;
	}
	if (here->heir && common && shared_first && !(prev && task) &&
	    hand_over(cpu, scheduled(common)->pid, common_ns, now_ns))
		return true;
	if (shared_first && scx_bpf_dsq_move_to_local(queue))
		return true;
	if (scx_bpf_dsq_move_to_local(cpu))
		return true;
	if (here->flags & UNSPIN_STEER_CPU_SHARED && scx_bpf_dsq_move_to_local(queue))
		return true;
	if (!prev || !task)
		return options.domains > 1 && here->flags & UNSPIN_STEER_CPU_SHARED && take_anything(queue);
	keep(cpu, prev, task, here, false, now_ns);
	return true;
}

/*
 * The thread that is next here comes, wherever it waits, unless the time for it has passed; false: none came. `yielder`: prev,
 * charged; NULL if it is not runnable.
 */
static __always_inline bool serve_next(s32 cpu, struct cpu_context *here, struct task_context *yielder, u64 now_ns)
{
	struct task_struct *p = bpf_task_from_pid(here->next);
	struct task_context *task;
	bool came = false;

	here->next = 0;
	if (!p)
		return false;
	task = context_of(p);
	/* One that is throttled waits for its quota, not for a CPU. */
	if (task && task->queue != THROTTLED_QUEUE) {
		task->called_until_ns = 0; /* now or not at all: others may call it again */
		if (unspin_is_called(here->next_until_ns, now_ns))
			came = here->next_is_buddy ? follow_yield_buddy(cpu, here, p, task, yielder)
						   : run_next(cpu, here, p, task, now_ns);
	}
	bpf_task_release(p);
	return came;
}

/*
 * A vCPU that was preempted where it can be on no other CPU (is_stuck()) runs up to where it leaves by itself: the next entry
 * to its guest, microseconds away, or the next tick. In the queue of that CPU, which is set beside the shared one anew when
 * no task waits in either, guests that make hypercalls without end were given 3 % more time than their share.
 */
static __always_inline bool extend_to_entry(struct task_struct *prev, struct task_context *task)
{
	if (!task->vcpu || task->leaves || !is_stuck(prev, 0))
		return false;
	task->leaves = 1;
	scx_bpf_task_set_slice(prev, 1);
	return true;
}

SEC("struct_ops/dispatch")
void BPF_PROG(steer_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_context *here = cpu_of(cpu);
	struct task_context *task = NULL;
	u64 now_ns = bpf_ktime_get_ns();
	bool called;

	if (!here)
		return;
	count(unspin_steer_dispatches, 1);
	here->dispatched_ns = now_ns;
	if (options.only_vms && unspin_before(movable_next_ns, now_ns))
		look_for_movable(now_ns);
	if (prev && scheduled(prev)->scx.flags & SCX_TASK_QUEUED)
		task = context_of(prev);
	if (task) {
		if (extend_to_entry(prev, task))
			return;
		charge(prev, task, now_ns);
		if (task->lender)
			return_to_lender(here, task, now_ns);
	}
	called = take_call(here);
	if (here->next) {
		u32 yielding = task ? task->yielding : 0;
		bool came = serve_next(cpu, here, task, now_ns);

		if (came && !here->next_is_buddy)
			count(here->next_returns ? unspin_steer_returned : unspin_steer_honoured, 1);
		if (came)
			return;
		if (called && task) /* it has requested nothing */
			task->yielding = yielding;
		if (!here->next_is_buddy && !here->next_returns)
			count(unspin_steer_missed, 1);
	}
	bound_starvation(cpu, here, now_ns);
	if (may_serve_shares(here, now_ns) && serve_shares(cpu, now_ns))
		return;
	if (options.domains > 1 && here->flags & UNSPIN_STEER_CPU_SHARED &&
	    take_for_balance(shared_queue_of(here), cpu, now_ns, task && task->home < SHARED_QUEUE))
		return;
	if (quotas) {
		throttle_heads(cpu, now_ns);
		throttle_heads(shared_queue_of(here), now_ns);
		if (task && is_throttled(task, now_ns)) /* enqueued again, it waits for its quota */
			task = NULL;
	}
	if (!run_least(cpu, here, prev, task, now_ns) && options.only_vms)
		look_for_movable(now_ns);
}

SEC("struct_ops/running")
void BPF_PROG(steer_running, struct task_struct *p)
{
	s32 cpu = task_cpu(p);
	struct cpu_context *here = cpu_of(cpu);
	struct task_context *task = context_of(p);
	bool own;

	if (!task || !here)
		return;
	own = !task->prepared;
	come_home(task, here);
	count(unspin_steer_switches, 1);
	task->on_cpu = 1;
	task->halted = 0;
	task->called_until_ns = 0;
	task->leaves = 0;
	task->charged_ns = scheduled(p)->se.sum_exec_runtime;
	task->charged_at_ns = bpf_ktime_get_ns();
	end_throttle(task, task->charged_at_ns);
	if (own)
		begin_slice(p, task, task->charged_at_ns);
	task->prepared = 0;
	task->boundary = 0;
	if (is_notified(task))
		task->overloaded = unspin_pcpu_overloaded(others_waiting());
	task->borrow_charged_ns = task->charged_ns;
	occupy(here, task);
	renew_samples(task, task->charged_at_ns);
	here->has_woken = 0;
	here->heir = 0;
	end_slice_on_time(cpu, here, task, task->charged_at_ns);
	if (own)
		gang(p, task, task->charged_at_ns);
}

SEC("struct_ops/stopping")
void BPF_PROG(steer_stopping, struct task_struct *p, bool runnable)
{
	struct task_context *task = context_of(p);
	struct cpu_context *here;
	u64 now_ns;

	if (!task)
		return;
	now_ns = bpf_ktime_get_ns();
	here = cpu_of(task_cpu(p));
	if (here) {
		here->runs.vm = 0;
		here->runner_weight = 0;
	}
	charge(p, task, now_ns);
	if (!runnable) {
		note_sleep(p, task);
		task->hands_over = here && unspin_hands_over(here->has_woken);
	}
	task->on_cpu = 0;
	task->halted = !runnable;
	task->left_ns = now_ns;
	if (task->vcpu) {
		remember(p, task);
		task->waited = runnable && may_be_sampled(task) && waits_at_place(task);
		if (runnable)
			count_preemption(task, scheduled(p)->scx.slice != 0);
	}
	/* Preempted by a real-time task: it continues where it was. */
	if (runnable && scheduled(p)->scx.slice) {
		task->prepared = 1;
		return;
	}
	if (task->lender && here)
		return_to_lender(here, task, now_ns);
	settle(p, task);
	task->payer = 0;
}

_Static_assert(__builtin_offsetof(struct sched_ext_ops, flags) == UNSPIN_STEER_OPS_FLAGS_AT &&
		       __builtin_offsetof(struct sched_ext_ops, timeout_ms) == UNSPIN_STEER_OPS_TIMEOUT_MS_AT,
	       "as in abi/bpf/scheduler.h");

SEC(".struct_ops.link")
struct sched_ext_ops steer = {
	.select_cpu = (void *)steer_select_cpu,
	.enqueue = (void *)steer_enqueue,
	.dispatch = (void *)steer_dispatch,
	.tick = (void *)steer_tick,
	.runnable = (void *)steer_runnable,
	.running = (void *)steer_running,
	.stopping = (void *)steer_stopping,
	.quiescent = (void *)steer_quiescent,
	.yield = (void *)steer_yield,
	.set_weight = (void *)steer_set_weight,
	.init_task = (void *)steer_init_task,
	.enable = (void *)steer_enable,
	.cgroup_init = (void *)steer_cgroup_init,
	.cgroup_exit = (void *)steer_cgroup_exit,
	.cgroup_move = (void *)steer_cgroup_move,
	.cgroup_set_weight = (void *)steer_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)steer_cgroup_set_bandwidth,
	.cgroup_set_idle = (void *)steer_cgroup_set_idle,
	.cpu_online = (void *)steer_cpu_online,
	.cpu_offline = (void *)steer_cpu_offline,
	.cpu_release = (void *)steer_cpu_release,
	.dump = (void *)steer_dump,
	.dump_cpu = (void *)steer_dump_cpu,
	.dump_task = (void *)steer_dump_task,
	.init = (void *)steer_init,
	.exit = (void *)steer_exit,
	/*
	 * Or such tasks go to the front of their CPU for 20 ms; and one that is throttled runs on where no other waits. User space
	 * adds SCX_OPS_SWITCH_PARTIAL and patience (abi/bpf/scheduler.h).
	 */
	.flags = SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_ENQ_LAST,
	.timeout_ms = 5000,
	.exit_dump_len = UNSPIN_STEER_DUMP_BYTES,
	.name = "unspin",
};
