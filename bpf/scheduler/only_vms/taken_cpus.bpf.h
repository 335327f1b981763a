/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * taken_cpus.bpf.h - CPUs that go to tasks of another class, where only VMs are under the scheduler. The fair class goes before
 * sched_ext (kernel/sched/sched.h, Linux 7.2), so nothing that may run elsewhere is to wait for such a CPU.
 *
 * ops.cpu_release() is called where a task of ours is pushed aside. Two more wait for a CPU that is taken: one that was put on an
 * idle CPU, or moved there by ops.dispatch, while one of the fair class woke up there; and one in the queue of a CPU although it may
 * run on several. Both are inserted anew: the first where the CPU is switched, the second there, where another CPU has nothing to
 * run, and once a slice.
 */
#ifndef UNSPIN_BPF_SCHEDULER_ONLY_VMS_TAKEN_CPUS_H
#define UNSPIN_BPF_SCHEDULER_ONLY_VMS_TAKEN_CPUS_H

#include "../queues.bpf.h"

static __always_inline void insert_movable_anew(u32 cpu, struct cpu_context *there)
{
	if (!there->taken || !there->movable)
		return;
	there->movable = 0;
	if (scx_bpf_dsq_nr_queued(cpu))
		scx_bpf_dsq_reenq(cpu, 0);
}

static __always_inline void look_for_movable(u64 now_ns)
{
	u32 cpu;

	if (!movable_waits)
		return;
	movable_waits = 0;
	movable_next_ns = now_ns + options.slice_ns;
	bpf_for(cpu, 0, options.cpus)
	{
		struct cpu_context *there = cpu_of(cpu);

		if (there)
			insert_movable_anew(cpu, there);
	}
}

/* With the lock of the CPU's run queue. Loaded where only VMs are ours. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_class, bool preempt, struct task_struct *previous, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_context *here = cpu_of(cpu);

	if (!here || !next)
		return 0;
	here->taken = scheduled(next)->pid && scheduled(next)->policy != SCHED_EXT;
	if (!scheduled(next)->pid) /* from here on others find it idle */
		look_for_movable(bpf_ktime_get_ns());
	if (!here->taken)
		return 0;
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL))
		scx_bpf_dsq_reenq(SCX_DSQ_LOCAL, 0);
	insert_movable_anew(cpu, here);
	/* Whoever came into the shared queue may have woken this CPU for it. */
	if (scx_bpf_dsq_nr_queued(shared_queue_of(here)))
		kick_an_idle_cpu(shared_queue_of(here));
	return 0;
}

#endif
