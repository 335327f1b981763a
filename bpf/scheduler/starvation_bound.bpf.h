/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * starvation_bound.bpf.h - nobody waits for ever: a bound on what a small weight may cost.
 *
 * A slice of 4 ms takes a task of weight 1 (SCHED_IDLE, nice 19) 400 ms of virtual time ahead, and with twenty tasks of nice 0
 * for each CPU the clocks come 50 ms further in a second: it is due in 8 s, in cgroups of little weight in minutes. The
 * kernel's watchdog sends a scheduler away for whom it has left waiting for 5 s, so nobody is left further ahead than the
 * clocks come in LONGEST_WAIT_NS at the pace that they have. That is asked of the last of each queue, so nothing is searched for:
 * who is too far ahead is brought forward, and then another one is the last. So each such task gets a slice in two seconds, 0.2
 * to 0.3 % of a CPU, although its weight says less.
 */
#ifndef UNSPIN_BPF_SCHEDULER_STARVATION_BOUND_H
#define UNSPIN_BPF_SCHEDULER_STARVATION_BOUND_H

#include "virtual_time.bpf.h"

/* Less than half of what the watchdog leaves: more tasks may come meanwhile, and slow the clocks down. Ours. */
#define LONGEST_WAIT_NS 2000000000ull
/* How often paces are measured and the last of a queue is looked at: a CPU's slices are even over so many. Ours. */
#define BOUND_PERIOD_NS 64000000ull
/* A clock that comes further than that in BOUND_PERIOD_NS has been taken along by somebody who is alone: farther than any wait. */
#define FARTHEST_NS (1ull << 40)

struct clock_rate shared_rate;

/* How far that clock comes in LONGEST_WAIT_NS, measured anew when it is time for it; whether it was. */
static __always_inline bool measure_rate(struct clock_rate *rate, u64 clock_ns, u64 now_ns)
{
	u64 since_ns = *(volatile u64 *)&rate->since_ns, elapsed_ns = now_ns - since_ns, come_ns = 0;

	/* Of the CPUs that measure the shared one's one does. */
	if (before(now_ns, since_ns + BOUND_PERIOD_NS) ||
	    !__sync_bool_compare_and_swap(&rate->since_ns, since_ns, now_ns))
		return false;
	if (before(rate->from_ns, clock_ns))
		come_ns = clock_ns - rate->from_ns;
	rate->from_ns = clock_ns;
	if (come_ns > FARTHEST_NS)
		come_ns = FARTHEST_NS;
	if (elapsed_ns > 4 * BOUND_PERIOD_NS) { /* it was idle: it has no pace yet */
		rate->in_time_ns = FARTHEST_NS;
		return false;
	}
	/* 2^40 * 2,000 is below 2^51. */
	rate->in_time_ns = come_ns * (LONGEST_WAIT_NS / 1000000) / (elapsed_ns / 1000000);
	return true;
}

/* The last of that queue has at most that virtual time from now on; true: it had more. From ops.dispatch only. */
static __always_inline bool bring_forward(u32 queue, u64 latest_ns)
{
	struct bpf_iter_scx_dsq backwards;
	struct task_struct *last;
	bool moved = false;

	if (bpf_iter_scx_dsq_new(&backwards, queue, SCX_DSQ_ITER_REV) == 0) {
		last = bpf_iter_scx_dsq_next(&backwards);
		if (last && before(latest_ns, scheduled(last)->scx.dsq_vtime)) {
			struct task_context *task = context_of(last);

			scx_bpf_dsq_move_set_vtime(&backwards, latest_ns);
			moved = scx_bpf_dsq_move_vtime(&backwards, last, queue, 0);
			if (moved && task)
				task->vtime_ns = latest_ns;
		}
	}
	bpf_iter_scx_dsq_destroy(&backwards);
	if (moved)
		count(unspin_steer_brought_forward, 1);
	return moved;
}

/*
 * Whoever waits for this CPU and is too far ahead is brought forward: one of each queue now and then, and one at each dispatch
 * while there are more. A shared clock stands while CPUs serve their own queues, and a CPU may be behind others that serve the
 * shared one: who waits in that is measured by the one that is further and faster. From ops.dispatch only.
 */
static __always_inline void bound_starvation(s32 cpu, struct cpu_context *here, u64 now_ns)
{
	bool shared = here->flags & UNSPIN_STEER_CPU_SHARED, more = here->behind;
	u64 reach_ns, common_reach_ns, front_ns;

	if (shared)
		measure_rate(&shared_rate, shared_now_ns, now_ns);
	more |= measure_rate(&here->rate, here->front_ns, now_ns);
	if (!more)
		return;
	/* Nobody of nice 0 is brought forward, however many there are. */
	reach_ns = here->rate.in_time_ns > plain_reach() ? here->rate.in_time_ns : plain_reach();
	more = bring_forward(cpu, here->front_ns + reach_ns - here->offset_ns);
	if (shared) {
		common_reach_ns = shared_rate.in_time_ns > reach_ns ? shared_rate.in_time_ns : reach_ns;
		front_ns = before(here->front_ns, shared_now_ns) ? shared_now_ns : here->front_ns;
		more |= bring_forward(SHARED_QUEUE, front_ns + common_reach_ns);
	}
	here->behind = more;
}

#endif
