/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpus.bpf.h - CPUs: made ready at attach, unplugged and plugged in, taken by real-time tasks.
 */
#ifndef UNSPIN_BPF_SCHEDULER_CPUS_H
#define UNSPIN_BPF_SCHEDULER_CPUS_H

#include "members.bpf.h"

/* That CPU is online from now on, or is not; those that are, are counted, its domain's and all. Returns 0. Not inlined, as clock_of(). */
__attribute__((noinline)) int set_offline(s32 changed, bool offline)
{
	struct cpu_context *there = cpu_of(changed);
	struct domain *domain;
	u32 cpu, queue, online = 0, all = 0;

	if (!there)
		return 0;
	there->offline = offline;
	queue = shared_queue_of(there);
	domain = domain_of(queue);
	bpf_for(cpu, 0, options.cpus)
	{
		there = cpu_of(cpu);
		if (!there || !(there->flags & UNSPIN_STEER_CPU_SHARED) || there->offline)
			continue;
		all++;
		if (shared_queue_of(there) == queue)
			online++;
	}
	cpus_online = all;
	if (domain)
		domain->online = online;
	return 0;
}

SEC("struct_ops/cpu_online")
void BPF_PROG(steer_cpu_online, s32 cpu)
{
	set_offline(cpu, false);
}

/*
 * The kernel takes care of tasks whose run queue is the CPU's own (rq_offline_scx()); those of other run queues that wait
 * in its queue of ours move to the queue of the CPU they are on.
 */
SEC("struct_ops/cpu_offline")
void BPF_PROG(steer_cpu_offline, s32 cpu)
{
	struct task_struct *p;

	set_offline(cpu, true);
	bpf_for_each(scx_dsq, p, cpu, 0)
	{
		struct task_context *task = context_of(p);
		s32 own = task_cpu(p);

		if (own == cpu || !task)
			continue;
		place_task(task, own, false);
		task->queue = own;
		scx_bpf_dsq_move_set_vtime(&___it, task->vtime_ns);
		scx_bpf_dsq_move_vtime(&___it, p, own, 0);
	}
}

/* A real-time task takes the CPU: tasks that wait for just this one may go elsewhere. */
SEC("struct_ops/cpu_release")
void BPF_PROG(steer_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* A new mask of the CPUs that serve that shared queue; of all of them: 0. NULL: no memory. */
static __always_inline struct bpf_cpumask *make_mask(u32 queue)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	u32 cpu;

	if (!mask)
		return NULL;
	bpf_for(cpu, 0, options.cpus)
	{
		struct cpu_context *there = cpu_of(cpu);

		if (there && there->flags & UNSPIN_STEER_CPU_SHARED && (!queue || shared_queue_of(there) == queue))
			bpf_cpumask_set_cpu(cpu, mask);
	}
	return mask;
}

/* The queue of one domain, and which CPUs serve it. */
static __always_inline s32 make_domain(u32 number)
{
	struct domain *domain = domain_numbered(number);
	struct bpf_cpumask *mask;

	if (!domain)
		return -ENOSPC;
	mask = make_mask(SHARED_QUEUE + number);
	if (!mask)
		return -ENOSPC;
	mask = bpf_kptr_xchg(&domain->mask, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return scx_bpf_create_dsq(SHARED_QUEUE + number, ANY_NODE);
}

SEC("struct_ops.s/init")
s32 BPF_PROG(steer_init)
{
	struct shared_cpus *cpus_shared;
	struct bpf_cpumask *mask;
	u32 zero = 0;
	u32 cpu, number;
	const struct cpumask *online;
	s32 error;

	cpus_shared = bpf_map_lookup_elem(&shared, &zero);
	if (!cpus_shared)
		return -ENOSPC;
	mask = make_mask(0);
	if (!mask)
		return -ENOSPC;
	mask = bpf_kptr_xchg(&cpus_shared->mask, mask);
	if (mask)
		bpf_cpumask_release(mask);
	make_throttle_timer();
	error = scx_bpf_create_dsq(THROTTLED_QUEUE, ANY_NODE);
	if (error)
		return error;
	bpf_for(number, 0, options.domains)
	{
		error = make_domain(number);
		if (error)
			return error;
	}
	online = scx_bpf_get_online_cpumask();
	bpf_for(cpu, 0, options.cpus)
	{
		set_offline(cpu, !bpf_cpumask_test_cpu(cpu, online));
		error = scx_bpf_create_dsq(cpu, ANY_NODE);
		if (error)
			break;
	}
	scx_bpf_put_cpumask(online);
	return error;
}

#endif
