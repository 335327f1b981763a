/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queues.bpf.h - the queues of domains (policy/mechanics/domains.h): CPUs that share a last-level cache, as set by user space.
 * One of them is the shared queue of the whole host where there is one domain only.
 */
#ifndef UNSPIN_BPF_SCHEDULER_DOMAINS_QUEUES_H
#define UNSPIN_BPF_SCHEDULER_DOMAINS_QUEUES_H

#include "../weights.bpf.h"
#include "../../../policy/mechanics/domains.h"

#define SHARED_QUEUE                                                                                                   \
	0x100000u /* the first domain's, others follow; above every CPU number, which names that CPU's queue */
#define NO_QUEUE 0x200001u
#define THROTTLED_QUEUE 0x200002u /* of those whose cgroup has used up its quota */
#define ANY_NODE (-1)

/* Changed by the domain's own CPUs; others read the clock and its offset. */
struct domain {
	u64 now_ns; /* the clock of its queue: policy/mechanics/virtual_time.h */
	u64 offset_ns;
	struct unspin_clock_rate rate;
	u64 taken_ns;			    /* when it last searched for a task of another one to take */
	struct bpf_cpumask __kptr *mask;    /* the CPUs that serve its queue; made by ops.init */
	u32 online;			    /* how many of them are online; a quotient by 0 is 0 in BPF */
	u64 fair_ns;			    /* policy/mechanics/crowd.h */
	u64 crowd_ns;			    /* when a crowd was counted last */
	u8 order[UNSPIN_STEER_DOMAINS_MAX]; /* the other domains, from near to far; set before attach */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNSPIN_STEER_DOMAINS_MAX);
	__type(key, u32);
	__type(value, struct domain);
} domains SEC(".maps");

u32 cpus_online;       /* of all domains */
u64 first_standing_ns; /* of the first domain: unspin_first_standing() */

static __always_inline struct domain *domain_numbered(u32 number)
{
	/* In bounds: the array map refuses an index beyond its end. */
	return bpf_map_lookup_elem(&domains, &number);
}

/* The queue that a CPU serves beside its own. */
static __always_inline u32 shared_queue_of(const struct cpu_context *there)
{
	return SHARED_QUEUE + (there->flags >> UNSPIN_STEER_CPU_DOMAIN_SHIFT);
}

/* The same by the CPU's number. */
static __always_inline u32 shared_queue_at(u32 cpu)
{
	struct cpu_context *there = cpu_of(cpu);

	return there ? shared_queue_of(there) : SHARED_QUEUE;
}

/* The shared queue to which a queue belongs: itself, or that of the CPU whose queue it is. */
static __always_inline u32 shared_queue_for(u32 queue)
{
	return queue >= SHARED_QUEUE ? queue : shared_queue_at(queue);
}

static __always_inline struct domain *domain_of(u32 queue)
{
	return domain_numbered(shared_queue_for(queue) - SHARED_QUEUE);
}

struct shared_cpus {
	struct bpf_cpumask __kptr *mask;
};

/* The CPUs that serve shared queues; made by ops.init. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared_cpus);
} shared SEC(".maps");

static __always_inline const struct cpumask *shared_mask(void)
{
	u32 zero = 0;
	struct shared_cpus *cpus_shared = bpf_map_lookup_elem(&shared, &zero);

	return cpus_shared ? (const struct cpumask *)cpus_shared->mask : NULL;
}

/* The CPUs that serve that shared queue; NULL: none such. */
static __always_inline const struct cpumask *mask_of(u32 queue)
{
	struct domain *domain;

	if (options.domains < 2)
		return shared_mask();
	domain = domain_of(queue);
	return domain ? (const struct cpumask *)domain->mask : NULL;
}

/* Whether a task may run on every CPU that serves the shared queue of that CPU, and so waits there. */
static __always_inline bool waits_shared(struct task_struct *p, s32 cpu)
{
	const struct cpumask *mask = mask_of(shared_queue_at(cpu));

	return mask && bpf_cpumask_subset(mask, scheduled(p)->cpus_ptr);
}

/* Whether a CPU of these was idle; it is woken to search for tasks. */
static __always_inline bool kick_idle_among(const struct cpumask *among)
{
	s32 idle = scx_bpf_pick_idle_cpu(among, 0);

	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	return idle >= 0;
}

/* A task was inserted into that shared queue: wakes an idle CPU, of its domain if there is one. */
static __always_inline void kick_an_idle_cpu(u32 queue)
{
	const struct cpumask *everywhere = shared_mask(), *near;

	if (options.domains > 1) {
		near = mask_of(queue);
		if (near && kick_idle_among(near))
			return;
	}
	if (everywhere)
		kick_idle_among(everywhere);
}

#endif
