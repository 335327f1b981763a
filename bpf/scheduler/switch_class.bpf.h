/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * switch_class.bpf.h - CPUs that go to tasks of another class, where only VMs are under the scheduler. The fair class goes before
 * sched_ext, so nothing that may run elsewhere is left on such a CPU.
 *
 * ops.cpu_release() is called where a task of ours is pushed aside. A task that was put on an idle CPU, or moved there by
 * ops.dispatch, while one of the fair class woke up there is not seen by it: so each switch is looked at.
 */
#ifndef UNSPIN_BPF_SCHEDULER_SWITCH_CLASS_H
#define UNSPIN_BPF_SCHEDULER_SWITCH_CLASS_H

#include "queues.bpf.h"

/* With the lock of the CPU's run queue. Loaded where only VMs are ours. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_class, bool preempt, struct task_struct *previous, struct task_struct *next)
{
	struct cpu_context *here = cpu_of(bpf_get_smp_processor_id());
	const struct cpumask *everywhere = shared_mask();
	s32 idle;

	if (!here || !next || !everywhere)
		return 0;
	here->taken = scheduled(next)->pid && scheduled(next)->policy != SCHED_EXT;
	if (!here->taken)
		return 0;
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL))
		scx_bpf_reenqueue_local___v2___anywhere();
	/* Whoever came into the shared queue may have woken this CPU for it. */
	if (scx_bpf_dsq_nr_queued(SHARED_QUEUE)) {
		idle = scx_bpf_pick_idle_cpu(everywhere, 0);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	}
	return 0;
}

#endif
