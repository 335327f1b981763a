/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * take.bpf.h - a CPU takes a task that waits in another domain, by the rules of policy/mechanics/domains.h. From ops.dispatch only.
 */
#ifndef UNSPIN_BPF_SCHEDULER_DOMAINS_TAKE_H
#define UNSPIN_BPF_SCHEDULER_DOMAINS_TAKE_H

#include "../slices.bpf.h"

/* Tasks at the front of a queue that are checked for one that may run here; the queue is locked meanwhile. Ours. */
#define LOOKED_AT_TO_TAKE 8
/* Domains that are behind and tried at one look, since tasks there may be bound to it. Ours. */
#define TRIED_TO_TAKE 4

/*
 * No task waits for this CPU: it takes the first one that may run here, of the nearest domain. The kernel looks through a queue for
 * it, past those that may not. Returns whether one came. Not inlined, and not static: the verifier goes through it once.
 */
__attribute__((noinline)) int take_anything(u32 own)
{
	struct domain *domain = domain_numbered(own - SHARED_QUEUE);
	u32 place;

	if (!domain)
		return 0;
	bpf_for(place, 0, options.domains - 1)
	{
		u32 other;

		if (place >= UNSPIN_STEER_DOMAINS_MAX) /* for the verifier */
			break;
		other = SHARED_QUEUE + domain->order[place];
		if (!scx_bpf_dsq_nr_queued(other) || !scx_bpf_dsq_move_to_local(other))
			continue;
		count(unspin_steer_taken_idle, 1);
		return 1;
	}
	return 0;
}

/* The first task of that queue that may run on this CPU comes, if it is among the first few. Returns whether one came. As above. */
__attribute__((noinline)) int take_first(u32 queue, s32 cpu)
{
	struct bpf_iter_scx_dsq waiting;
	struct task_struct *p;
	bool moved = false;
	int look;

	if (bpf_iter_scx_dsq_new(&waiting, queue, 0) == 0) {
		bpf_for(look, 0, LOOKED_AT_TO_TAKE)
		{
			p = bpf_iter_scx_dsq_next(&waiting);
			if (!p)
				break;
			if (!may_run_on(p, cpu))
				continue;
			moved = scx_bpf_dsq_move(&waiting, p, SCX_DSQ_LOCAL, 0);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&waiting);
	return moved;
}

/* Whether a domain that stands there takes a task of that one, in which a task waits. */
static __always_inline bool is_taken_from(u32 number, u64 ours_ns)
{
	struct domain *other = domain_numbered(number);

	return other &&
	       unspin_takes_from(ours_ns, unspin_standing(other->now_ns, other->offset_ns), options.slice_ns) &&
	       scx_bpf_dsq_nr_queued(SHARED_QUEUE + number) > 0;
}

/* Where a CPU stands: its domain, or its own queue if it runs a task of that and none of its domain waits. */
static __always_inline u64 standing_at(const struct domain *domain, u32 own, s32 cpu, bool runs_own)
{
	const struct cpu_context *here = cpu_of(cpu);

	if (here && runs_own && scx_bpf_dsq_nr_queued(own) == 0)
		return here->standing_ns;
	return unspin_standing(domain->now_ns, domain->offset_ns);
}

/*
 * This CPU's domain takes a task of one that is behind, if it is time to look. Tasks that wait there may all be bound to it, however far
 * behind it is: so it is begun with another one each time, and a few are tried. `runs_own`: the CPU runs a task of its own queue.
 * Returns whether a task came.
 */
__attribute__((noinline)) int take_for_balance(u32 own, s32 cpu, u64 now_ns, bool runs_own)
{
	struct domain *domain = domain_numbered(own - SHARED_QUEUE);
	u32 others = options.domains - 1, place, tried = 0;
	u64 taken_ns, ours_ns;

	if (!domain || !others)
		return 0;
	taken_ns = *(volatile u64 *)&domain->taken_ns;
	/* Of the domain's CPUs one looks. */
	if (!unspin_takes_again(taken_ns, now_ns) || !__sync_bool_compare_and_swap(&domain->taken_ns, taken_ns, now_ns))
		return 0;
	ours_ns = standing_at(domain, own, cpu, runs_own);
	bpf_for(place, 0, others)
	{
		u32 at = (place + now_ns / UNSPIN_DOMAIN_TAKES_EVERY_NS) % others, number;

		if (at >= UNSPIN_STEER_DOMAINS_MAX || tried >= TRIED_TO_TAKE) /* the first for the verifier */
			break;
		number = domain->order[at];
		if (!is_taken_from(number, ours_ns))
			continue;
		tried++;
		if (take_first(SHARED_QUEUE + number, cpu)) {
			count(unspin_steer_taken_for_balance, 1);
			return 1;
		}
	}
	return 0;
}

#endif
