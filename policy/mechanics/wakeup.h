/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * wakeup.h - where a task is placed that wakes up, and whether it runs at once instead of the one that runs.
 *
 * A task that sleeps gains nothing by it: it keeps the lag with which it went to sleep, as on the fair class (place_entity(),
 * kernel/sched/fair.c, Linux 7.2), and what it had run too much is waited out while it sleeps. Beyond that a task whose runs are
 * short is placed ahead of the others by what they are shorter than a slice: its deadline comes so much earlier, as that of a
 * task with a short sched_attr::sched_runtime on the fair class. How long its runs are is seen, nobody has to say it. So a
 * periodic task, an I/O thread or a QEMU's main loop does not wait behind a crowd of tasks that are woken together to compute,
 * and gains a slice in all, never more.
 *
 * Times are weighted ns (virtual_time.h) unless they say that they are time on a CPU. Callable from anywhere. Ours.
 */
#ifndef UNSPIN_POLICY_MECHANICS_WAKEUP_H
#define UNSPIN_POLICY_MECHANICS_WAKEUP_H

#include "virtual_time.h"

/* A run that is shorter than the mean, or longer, changes that by one in so many parts of the difference. Ours. */
#define UNSPIN_BURST_PARTS 4u

/*
 * For so long no wake-up preempts a task of the host: a switch costs some microseconds, so that preemption takes a tenth of a CPU at
 * most, and whoever wakes up beside CPU hogs does not notice. Ours.
 */
#define UNSPIN_PROTECTED_NS 100000u

/* A CPU is handed over to a task that is ahead of the first one that waits by at most one in so many parts of a slice. Ours. */
#define UNSPIN_HANDED_OVER_PARTS 16u

/*
 * How long runs of the task are in the mean, ns of CPU time: it went to sleep after one of ran_ns, which counts as a slice at most. It
 * follows long runs as slowly as short ones, so that one long run among many short ones, as by interrupts that fall into it,
 * makes no other task of it.
 */
UNSPIN_PURE unspin_u64 unspin_mean_burst(unspin_u64 mean_ns, unspin_u64 ran_ns, unspin_u64 slice_ns)
{
	if (ran_ns > slice_ns)
		ran_ns = slice_ns;
	if (ran_ns >= mean_ns)
		return mean_ns + (ran_ns - mean_ns) / UNSPIN_BURST_PARTS;
	return mean_ns - (mean_ns - ran_ns + UNSPIN_BURST_PARTS - 1) / UNSPIN_BURST_PARTS;
}

/*
 * How long the task may be expected to run when it wakes up next, ns of CPU time: it went to sleep after a run of ran_ns. Longer
 * runs count at once, shorter ones bit by bit: a task that computes now and then is none that never does. At most a slice.
 */
UNSPIN_PURE unspin_u64 unspin_expected_burst(unspin_u64 burst_ns, unspin_u64 ran_ns, unspin_u64 slice_ns)
{
	if (ran_ns > slice_ns)
		ran_ns = slice_ns;
	return ran_ns >= burst_ns ? ran_ns : unspin_mean_burst(burst_ns, ran_ns, slice_ns);
}

/* By how much the task is behind its queue's clock when it goes to sleep; 0: it is not. */
UNSPIN_PURE unspin_u64 unspin_lag(unspin_u64 vtime_ns, unspin_u64 clock_ns)
{
	return unspin_before(vtime_ns, clock_ns) ? clock_ns - vtime_ns : 0;
}

/*
 * The virtual time of a task that wakes up, of unspin_place_vtime(). `lag_ns`: unspin_lag() when it went to sleep; `burst_ns`:
 * unspin_expected_burst(), at most a slice.
 */
UNSPIN_PURE unspin_u64 unspin_wake_vtime(unspin_u64 vtime_ns, unspin_u64 weight, unspin_u64 lag_ns, unspin_u64 burst_ns,
					 unspin_u64 clock_ns, unspin_u64 slice_ns)
{
	unspin_u64 behind_ns = burst_ns < slice_ns ? unspin_weighted(weight, slice_ns - burst_ns) : 0;
	unspin_u64 floor_ns;

	if (behind_ns < lag_ns)
		behind_ns = lag_ns;
	floor_ns = clock_ns - behind_ns;
	return unspin_before(vtime_ns, floor_ns) ? floor_ns : vtime_ns;
}

/*
 * Whether a task that wakes up at that position runs at once instead of one that has come to runner_ns: it would be behind that
 * even after the run that is expected of it.
 */
UNSPIN_PURE _Bool unspin_wakeup_preempts(unspin_u64 position_ns, unspin_u64 weight, unspin_u64 burst_ns,
					 unspin_u64 runner_ns)
{
	return unspin_before(position_ns + unspin_weighted(weight, burst_ns), runner_ns);
}

/*
 * Whether a task that has had its CPU for ran_ns goes on, whoever wakes up. Without this a thread that sends messages was preempted at
 * each by a receiver with short runs: groups of such did 0.34 of the messages that they do under the fair class, which protects a
 * task up to its base slice (RUN_TO_PARITY, protect_slice(), kernel/sched/fair.c, Linux 7.2). A vCPU is not protected: whoever
 * called it, or waits for its host's thread, waits no longer than before.
 */
UNSPIN_PURE _Bool unspin_is_protected(_Bool vcpu, unspin_u64 ran_ns)
{
	return !vcpu && ran_ns < UNSPIN_PROTECTED_NS;
}

/*
 * Whether a CPU whose task goes to sleep is handed over to the one task that it has woken meanwhile, the heir, which waits at heir_ns,
 * past the first of those that wait for that CPU, at first_ns. The kernel says by WF_SYNC that whoever wakes is about to sleep
 * (include/linux/wait.h, wake_up_interruptible_sync_poll(), Linux 7.2). Two that answer each other then stay on one CPU, until they are
 * ahead by that much: whoever waits is passed by both for twice that at most, and a run of each. Not the heir of several: a sender of
 * messages would hand over at each, and its receivers would be switched to for each message.
 */
UNSPIN_PURE _Bool unspin_is_handed_over(unspin_u64 heir_ns, unspin_u64 first_ns, unspin_u64 slice_ns)
{
	return !unspin_before(first_ns + slice_ns / UNSPIN_HANDED_OVER_PARTS, heir_ns);
}

/*
 * Whether a task has handed its CPU over that goes to sleep and has woken so many others in this run as it was about to: next time its
 * heir waits for that CPU alone from the wake-up on. One that is interrupted by wake-ups and goes on, or wakes several, is no such.
 */
UNSPIN_PURE _Bool unspin_hands_over(unspin_u32 woken)
{
	return woken == 1;
}

/*
 * Whether a CPU may go to an heir without a look at its queues, which was taken at looked_ns last: tasks that wait there in vain for long
 * are found by that look (starvation_bound.h), so it is not put off for more than a slice.
 */
UNSPIN_PURE _Bool unspin_may_skip_queues(unspin_u64 looked_ns, unspin_u64 now_ns, unspin_u64 slice_ns)
{
	return now_ns - looked_ns < slice_ns;
}

#endif
