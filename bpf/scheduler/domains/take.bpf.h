/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * take.bpf.h - a CPU takes a task that waits in another domain, by the rules of policy/mechanics/domains.h. From ops.dispatch only.
 */
#ifndef UNSPIN_BPF_SCHEDULER_DOMAINS_TAKE_H
#define UNSPIN_BPF_SCHEDULER_DOMAINS_TAKE_H

#include "../slices.bpf.h"

/* Tasks at the front of a queue that are looked at for one that may run here: it is locked meanwhile. Ours. */
#define LOOKED_AT_TO_TAKE 8

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

/* The queue of the domain that is farthest behind, of those that are so by more than a slice can make; 0: there is none. */
static __always_inline u32 farthest_behind(const struct domain *domain)
{
	u64 ours_ns = unspin_standing(domain->now_ns, domain->offset_ns), least_ns = ours_ns;
	u32 place, found = 0;

	bpf_for(place, 0, options.domains - 1)
	{
		struct domain *other;
		u64 theirs_ns;
		u32 number;

		if (place >= UNSPIN_STEER_DOMAINS_MAX) /* for the verifier */
			break;
		number = domain->order[place];
		other = domain_numbered(number);
		if (!other)
			break;
		theirs_ns = unspin_standing(other->now_ns, other->offset_ns);
		if (!unspin_takes_from(ours_ns, theirs_ns, options.slice_ns) || !unspin_before(theirs_ns, least_ns) ||
		    !scx_bpf_dsq_nr_queued(SHARED_QUEUE + number))
			continue;
		least_ns = theirs_ns;
		found = SHARED_QUEUE + number;
	}
	return found;
}

/* The first task of that queue that may run on this CPU comes, if it is among the first few. Returns whether one came. */
static __always_inline bool take_first(u32 queue, s32 cpu)
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

/* This CPU's domain takes a task of the one that is farthest behind, if it is time to look. Returns whether one came. */
__attribute__((noinline)) int take_for_balance(u32 own, s32 cpu, u64 now_ns)
{
	struct domain *domain = domain_numbered(own - SHARED_QUEUE);
	u64 taken_ns;
	u32 other;

	if (!domain)
		return 0;
	taken_ns = *(volatile u64 *)&domain->taken_ns;
	/* Of the domain's CPUs one looks. */
	if (!unspin_takes_again(taken_ns, now_ns) || !__sync_bool_compare_and_swap(&domain->taken_ns, taken_ns, now_ns))
		return 0;
	other = farthest_behind(domain);
	if (!other || !take_first(other, cpu))
		return 0;
	count(unspin_steer_taken_for_balance, 1);
	return 1;
}

#endif
