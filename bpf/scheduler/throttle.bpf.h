/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * throttle.bpf.h - tasks whose cgroup has used up its cpu.max: the queue in which they wait, and the timer that releases them.
 *
 * Under sched_ext the kernel enforces no quota (ops.cgroup_set_bandwidth() only reports it). A task is throttled where it is enqueued, and
 * where it is the head of a queue when its cgroup's quota is used up. It waits in THROTTLED_QUEUE, ordered by when its quota is refilled, and
 * does not count in its group's weight until it runs. As on the fair class up to Linux 6.17, that may be inside the kernel, while it
 * holds a lock there.
 */
#ifndef UNSPIN_BPF_SCHEDULER_THROTTLE_H
#define UNSPIN_BPF_SCHEDULER_THROTTLE_H

#include "bandwidth.bpf.h"

/* Heads of a queue that one ops.dispatch throttles: one more runs for the shortest slice, as a debt. Ours. */
#define HEADS_THROTTLED 4
/* Tasks that one expiry of the timer lets go, and when the next go: a softirq is not to last for long. Ours. */
#define RELEASED_AT_ONCE 128
#define RELEASED_LATER_NS 100000ull
/* The kernel moves a task to its queue after ops.enqueue has returned: an expiry that finds the queue empty looks once more after so long. Ours. */
#define LOOKED_AGAIN_NS 10000000ull

u64 next_release_ns;	 /* when the timer expires; 0: it is not armed */
u32 looks_again;	 /* it is armed for the last time while the queue is empty */
u32 quotas_have_changed; /* every throttled task is checked */
u32 released;		 /* by this expiry; a variable of its function the verifier would count through */

struct throttle_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct throttle_timer);
} throttle_timers SEC(".maps");

/* The timer expires then, or earlier. Of CPUs that arm it at once the one with the earliest time is the last to start it. */
static __always_inline void arm_throttle_timer(u64 at_ns, u64 now_ns)
{
	u32 zero = 0;
	struct throttle_timer *one = bpf_map_lookup_elem(&throttle_timers, &zero);
	u64 armed_ns = *(volatile u64 *)&next_release_ns;

	if (!one)
		return;
	if (armed_ns && !unspin_before(at_ns, armed_ns))
		return;
	if (!__sync_bool_compare_and_swap(&next_release_ns, armed_ns, at_ns)) {
		armed_ns = *(volatile u64 *)&next_release_ns;
		if (armed_ns && unspin_before(armed_ns, at_ns))
			return;
		next_release_ns = at_ns;
	}
	bpf_timer_start(&one->timer, unspin_before(now_ns, at_ns) ? at_ns - now_ns : 1, 0);
	armed_ns = *(volatile u64 *)&next_release_ns;
	if (armed_ns && unspin_before(armed_ns, at_ns))
		bpf_timer_start(&one->timer, unspin_before(now_ns, armed_ns) ? armed_ns - now_ns : 1, 0);
}

/* p waits for its quota from now on; false: it need not. From ops.enqueue, before anything is done. */
static __always_inline bool throttle(struct task_struct *p, struct task_context *task, u64 enq_flags)
{
	struct scx_bpf_dsq_insert_vtime_args args = {
		.dsq_id = THROTTLED_QUEUE,
		.slice = options.slice_ns,
		.enq_flags = enq_flags,
	};
	struct cpu_context *here;
	u64 now_ns, until_ns;

	if (!quotas || scheduled(p)->flags & PF_EXITING)
		return false;
	now_ns = bpf_ktime_get_ns();
	until_ns = throttled_until(task->group, now_ns);
	if (!until_ns)
		return false;
	if (unspin_throttled_too_long(task->throttled_since_ns, now_ns))
		return false;
	if (!task->throttled_since_ns)
		task->throttled_since_ns = now_ns;
	count(unspin_steer_throttled, 1);
	count_weight(task, 0);
	task->placed = 0;
	task->queue = THROTTLED_QUEUE;
	args.vtime = unspin_throttle_ends(until_ns, task->throttled_since_ns);
	__scx_bpf_dsq_insert_vtime(p, &args);
	looks_again = 0;
	arm_throttle_timer(args.vtime, now_ns);
	/* Others of its cgroup may weigh more from now on (scheduler/waits/starvation_bound.bpf.h). */
	here = cpu_of(bpf_get_smp_processor_id());
	if (here)
		here->behind = 1;
	return true;
}

/* The head of that queue waits for its quota from now on; false: it was moved elsewhere meanwhile. From ops.dispatch only. */
static __always_inline bool throttle_head(u32 queue, struct task_struct *head, struct task_context *task, u64 until_ns,
					  u64 now_ns)
{
	struct bpf_iter_scx_dsq waiting;
	bool moved = false;

	if (!task->throttled_since_ns)
		task->throttled_since_ns = now_ns;
	until_ns = unspin_throttle_ends(until_ns, task->throttled_since_ns);
	if (bpf_iter_scx_dsq_new(&waiting, queue, 0) == 0) {
		scx_bpf_dsq_move_set_vtime(&waiting, until_ns);
		moved = scx_bpf_dsq_move_vtime(&waiting, head, THROTTLED_QUEUE, 0);
	}
	bpf_iter_scx_dsq_destroy(&waiting);
	if (!moved)
		return false;
	task->queue = THROTTLED_QUEUE;
	count(unspin_steer_throttled, 1);
	arm_throttle_timer(until_ns, now_ns);
	return true;
}

/*
 * Heads of that queue that are throttled leave it. From ops.dispatch only; returns 0. Not inlined, and not static: the
 * verifier goes through it once.
 */
__attribute__((noinline)) int throttle_heads(u32 queue, u64 now_ns)
{
	int look;

	bpf_for(look, 0, HEADS_THROTTLED)
	{
		struct task_struct *head = scx_bpf_dsq_peek(queue);
		struct task_context *task = head ? context_of(head) : NULL;
		u64 until_ns = task ? throttled_until(task->group, now_ns) : 0;

		if (!until_ns || unspin_throttled_too_long(task->throttled_since_ns, now_ns) ||
		    !throttle_head(queue, head, task, until_ns, now_ns))
			return 0;
	}
	return 0;
}

/* A task that may have been throttled begins to run. */
static __always_inline void end_throttle(struct task_context *task, u64 now_ns)
{
	if (!task->throttled_since_ns)
		return;
	if (unspin_throttled_too_long(task->throttled_since_ns, now_ns))
		count(unspin_steer_throttled_too_long, 1);
	task->throttled_since_ns = 0;
	if (!task->counted)
		count_weight(task, task->weight);
}

/* The queue to which a task that was throttled comes: where it may run on all of its CPUs the shared one. */
static __always_inline u32 released_to(struct task_struct *p)
{
	s32 cpu = task_cpu(p);

	return !is_stuck(p, 0) && waits_shared(p, cpu) ? shared_queue_at(cpu) : cpu;
}

/*
 * Softirq, with no run queue locked. Tasks whose quota has been refilled go back to the queues; if others use it up first, they are
 * throttled there again. Fields of a task that leaves the queue meanwhile are set again where it is inserted.
 */
static int release_throttled(void *map, u32 *key, struct throttle_timer *one)
{
	u32 all = __sync_lock_test_and_set(&quotas_have_changed, 0), again;
	u64 now_ns = bpf_ktime_get_ns(), next_ns = 0;
	struct task_struct *p;

	next_release_ns = 0;
	released = 0;
	again = __sync_lock_test_and_set(&looks_again, 1);
	bpf_for_each(scx_dsq, p, THROTTLED_QUEUE, 0)
	{
		struct task_context *task = context_of(p);
		u64 until_ns = scheduled(p)->scx.dsq_vtime;
		bool due = !unspin_before(now_ns, until_ns);
		u32 queue;

		if (!task)
			continue;
		if (!due && !(all && !throttled_until(task->group, now_ns))) {
			if (!next_ns)
				next_ns = until_ns;
			if (!all)
				break;
			continue;
		}
		released++;
		if (released > RELEASED_AT_ONCE) {
			next_ns = now_ns + RELEASED_LATER_NS;
			quotas_have_changed |= all;
			break;
		}
		queue = released_to(p);
		place_task(task, queue, false);
		scx_bpf_dsq_move_set_vtime(&___it, task->vtime_ns);
		if (scx_bpf_dsq_move_vtime(&___it, p, queue, 0)) {
			task->queue = queue;
			kick_for(queue);
		}
	}
	if (next_ns || released)
		looks_again = 0;
	if (!next_ns && (released || !again))
		next_ns = now_ns + LOOKED_AGAIN_NS;
	if (next_ns)
		arm_throttle_timer(next_ns, now_ns);
	return 0;
}

/* From ops.init: the kernel lets a timer move tasks that was made where no run queue is locked. */
static __always_inline void make_throttle_timer(void)
{
	u32 zero = 0;
	struct throttle_timer *one = bpf_map_lookup_elem(&throttle_timers, &zero);

	if (one && bpf_timer_init(&one->timer, &throttle_timers, CLOCK_MONOTONIC) == 0)
		bpf_timer_set_callback(&one->timer, release_throttled);
}

/* cpu.max and cpu.max.burst of a group; a quota of STEER_NO_QUOTA: none. The kernel calls for one cgroup at a time. */
static __always_inline void set_quota(struct group *group, u64 period_us, u64 quota_us, u64 burst_us)
{
	bool had = group->bandwidth.quota_ns != UNSPIN_NO_QUOTA, has = quota_us != STEER_NO_QUOTA;
	u64 now_ns = bpf_ktime_get_ns();

	if (!has)
		group->bandwidth = (struct unspin_bandwidth){};
	else
		unspin_set_bandwidth(&group->bandwidth, quota_us, period_us, burst_us, now_ns);
	if (has != had)
		__sync_fetch_and_add(&quotas, has ? 1 : -1);
	if (!had && !has)
		return;
	quotas_have_changed = 1;
	arm_throttle_timer(now_ns + 1, now_ns);
}

#endif
