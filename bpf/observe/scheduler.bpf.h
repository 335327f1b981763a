/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scheduler.bpf.h - follows vCPU threads through context switches, wake-ups and exits. These programs do not depend on
 * KVM, so they can be tested with synthetic threads on a kernel without KVM (synthetic.bpf.c).
 */
#ifndef UNSPIN_BPF_OBSERVE_SCHEDULER_H
#define UNSPIN_BPF_OBSERVE_SCHEDULER_H

#include "emit.bpf.h"
#include "guest_exit.bpf.h"
#include "pv_pages.bpf.h"
#include "threads.bpf.h"

static __always_inline void leave_cpu(struct unspin_observed_thread *leaving, u64 now_ns, bool runnable)
{
	if (runnable)
		leaving->counters.switches_out_runnable++;
	else
		leaving->counters.switches_out_asleep++;
	if (leaving->left_guest_ns && !leaving->handled_ns && now_ns > leaving->left_guest_ns)
		leaving->handled_ns = now_ns - leaving->left_guest_ns;
	change_state(leaving, now_ns, runnable ? UNSPIN_THREAD_RUNNABLE : UNSPIN_THREAD_ASLEEP);
}

/* Writes the task that is about to run on this CPU into `running`; returns its slot, NULL if it is no vCPU thread. */
static __always_inline struct unspin_observed_thread *note_running(struct task_struct *next)
{
	u32 *slot = next->bpf_storage ? bpf_task_storage_get(&slot_of_task, next, NULL, 0) : NULL;
	struct unspin_observed_thread *thread = thread_in(slot);

	*running_here() = thread ? *slot - 1 + RUNNING_SLOTS : RUNNING_NO_VCPU;
	return thread;
}

/* A switch from `leaving` to `arriving`; NULL: that task is no vCPU thread. At least one is not NULL. */
struct switch_facts {
	const struct unspin_observed_thread *leaving, *arriving;
	u64 now_ns;
	u32 previous, next; /* thread ids */
	u32 flags;	    /* UNSPIN_SWITCH_*, without the mode */
};

static __always_inline void fill_switch_out(struct unspin_event *event, const struct switch_facts *facts)
{
	const struct unspin_observed_thread *leaving = facts->leaving;
	u64 rip = UNSPIN_UNKNOWN;
	u32 mode = read_place((void *)leaving->vcpu_pointer, leaving->isa, &rip);

	fill(event, leaving, UNSPIN_EVENT_SWITCH_OUT, facts->now_ns,
	     halves(facts->next, facts->arriving ? facts->arriving->counters.vm : UNSPIN_NO_VM),
	     halves(facts->flags | mode << UNSPIN_SWITCH_MODE_SHIFT, leaving->exit_code), rip);
}

static __always_inline void fill_switch_in(struct unspin_event *event, const struct switch_facts *facts)
{
	fill(event, facts->arriving, UNSPIN_EVENT_SWITCH_IN, facts->now_ns, facts->previous,
	     facts->leaving ? facts->leaving->counters.vm : UNSPIN_NO_VM, 0);
}

static __always_inline void count_lost_switch(const struct switch_facts *facts)
{
	if (facts->leaving)
		count_lost(UNSPIN_EVENT_SWITCH_OUT);
	if (facts->arriving)
		count_lost(UNSPIN_EVENT_SWITCH_IN);
}

/*
 * Writes all events of a switch in one record. User space selects UNSPIN_EVENT_SWITCH_OUT and _IN together or
 * neither.
 */
static __always_inline void emit_switch(const struct switch_facts *facts)
{
	struct unspin_event *record;

	if (!wants(UNSPIN_EVENT_SWITCH_OUT))
		return;
	if (facts->leaving && facts->arriving) {
		record = bpf_ringbuf_reserve(&events, 2 * sizeof(*record), 0);
		if (record) {
			fill_switch_out(record, facts);
			fill_switch_in(record + 1, facts);
		}
	} else {
		record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
		if (record && facts->leaving)
			fill_switch_out(record, facts);
		else if (record && facts->arriving)
			fill_switch_in(record, facts);
	}
	if (record)
		submit(record);
	else
		count_lost_switch(facts);
}

/* The same for a leaving vCPU with a pv page, whose contents go into the record too. */
static __always_inline void emit_switch_with_pv_page(const struct switch_facts *facts,
						     const struct pv_page_words *words)
{
	struct unspin_event *record = bpf_ringbuf_reserve(&events, 3 * sizeof(*record), 0);

	if (!record) {
		count_lost_switch(facts);
		count_lost(UNSPIN_EVENT_PV_PAGE);
		return;
	}
	fill_switch_out(record, facts);
	fill_pv_page(record + 1, facts->leaving, facts->now_ns, words);
	if (facts->arriving)
		fill_switch_in(record + 2, facts);
	else
		record[2].kind = UNSPIN_EVENT_NONE;
	submit(record);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *previous, struct task_struct *next, u32 previous_state)
{
	struct unspin_observed_thread *leaving, *arriving;
	/* A preempted task stays on its run queue whatever its state is (kernel/sched/core.c, __schedule()). */
	bool runnable = preempt || previous_state == 0;
	struct switch_facts facts;
	struct pv_page_words words;

	if (!previous || !next)
		return 0;
	leaving = thread_of_running(previous);
	arriving = note_running(next);
	if (!leaving) {
		check_again(arriving); /* else the compiler tests both pointers at once, as one value */
		if (!arriving)
			return 0;
	}
	check_again(leaving);
	check_again(arriving);
	facts = (struct switch_facts){leaving,
				      arriving,
				      bpf_ktime_get_ns(),
				      previous->pid,
				      next->pid,
				      (runnable ? UNSPIN_SWITCH_RUNNABLE : 0) | (preempt ? UNSPIN_SWITCH_PREEMPT : 0)};
	if (leaving)
		leave_cpu(leaving, facts.now_ns, runnable);
	if (arriving) {
		arriving->counters.switches_in++;
		change_state(arriving, facts.now_ns, UNSPIN_THREAD_RUNNING);
	}
	/* The current task is still `previous`. */
	if (leaving && wants(UNSPIN_EVENT_SWITCH_OUT) && read_pv_page(leaving, &words))
		emit_switch_with_pv_page(&facts, &words);
	else
		emit_switch(&facts);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_sched_wakeup, struct task_struct *task)
{
	struct unspin_observed_thread *thread;
	u64 now_ns;

	if (!task)
		return 0;
	thread = thread_of(task);
	/* A task can be woken before it has left its CPU or its run queue: then it has not slept. */
	if (!thread || thread->state != UNSPIN_THREAD_ASLEEP)
		return 0;
	now_ns = bpf_ktime_get_ns();
	change_state(thread, now_ns, UNSPIN_THREAD_RUNNABLE);
	emit(thread, UNSPIN_EVENT_WAKEUP, now_ns, (u32)bpf_get_current_pid_tgid(), 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_process_exit, struct task_struct *task)
{
	u32 *slot;

	if (!task)
		return 0;
	slot = bpf_task_storage_get(&slot_of_task, task, NULL, 0);
	if (slot)
		end_thread(slot, bpf_ktime_get_ns());
	return 0;
}

#endif
