/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * domains.h - CPUs that share a last-level cache have a queue of their own: a domain. When a CPU takes a task of another one.
 *
 * A CPU for which no task waits takes one of the nearest domain in which one does. Where all CPUs are busy, a domain with more
 * weight for each of its CPUs than another has a slower clock, and is taken from while it is behind by more than a slice can
 * make. So each task gets its share of the whole host, and not of its domain's CPUs, and a task moves once in many slices.
 *
 * A clock alone does not tell who is behind. One whose tasks are light, or few, runs ahead of others at no cost for them. So a
 * domain's standing is its clock and an offset, which is raised where no task waits there: then it has no claim on others, but for
 * what its last tasks that waited left behind when they were taken (set abreast of the first one, the heaviest of ten tasks on four
 * CPUs had 1.8 % less than its share). A task that can be on one CPU only runs by the clock of that CPU's queue, which has a standing
 * of its own. Times as in virtual_time.h; a standing is comparable with every domain's.
 */
#ifndef UNSPIN_POLICY_MECHANICS_DOMAINS_H
#define UNSPIN_POLICY_MECHANICS_DOMAINS_H

#include "virtual_time.h"

/* CPUs of a domain at most: a larger cache's are shared out among several. Ours; other numbers were not measured. */
#define UNSPIN_DOMAIN_CPUS_MAX 16u

/* A domain takes at most one task of another one in so long while its CPUs are busy: a tick. Ours. */
#define UNSPIN_DOMAIN_TAKES_EVERY_NS UNSPIN_TICK_NS

/* How far a domain is, comparable with others. */
UNSPIN_PURE unspin_u64 unspin_standing(unspin_u64 clock_ns, unspin_u64 offset_ns)
{
	return clock_ns + offset_ns;
}

/*
 * Where there are several domains a task may be behind its queue's clock by its reach (unspin_reach()) and by this: the distance at
 * which others take tasks of its domain. Without it a task that is taken is set forward to its reach, which is shortest for heavy
 * tasks: one of the weight 1586 among nine on four CPUs had 0.979 to 1.001 of its share in 48 boots.
 */
UNSPIN_PURE unspin_u64 unspin_domain_lag(unspin_u64 slice_ns)
{
	return unspin_plain_reach(slice_ns);
}

/* Whether one that stands there takes a task that waits in another one. */
UNSPIN_PURE _Bool unspin_takes_from(unspin_u64 ours_ns, unspin_u64 theirs_ns, unspin_u64 slice_ns)
{
	return unspin_before(theirs_ns + unspin_plain_reach(slice_ns), ours_ns);
}

/* Whether it is time to look for one. */
UNSPIN_PURE _Bool unspin_takes_again(unspin_u64 taken_ns, unspin_u64 now_ns)
{
	return !unspin_before(now_ns, taken_ns + UNSPIN_DOMAIN_TAKES_EVERY_NS);
}

/* The offset of a domain in which no task waits: it is no further behind the first one than makes others take from it. */
UNSPIN_PURE unspin_u64 unspin_offset_without_claim(unspin_u64 clock_ns, unspin_u64 offset_ns, unspin_u64 first_ns,
						   unspin_u64 slice_ns)
{
	unspin_u64 least_ns = first_ns - unspin_plain_reach(slice_ns);

	return unspin_before(unspin_standing(clock_ns, offset_ns), least_ns) ? least_ns - clock_ns : offset_ns;
}

/*
 * Where a queue of one CPU stands, by what its tasks have run: that CPU takes tasks of domains that are behind that, where it runs a
 * task of its own queue and none of its domain waits. For then no clock of its domain moves. `alone`: no task waits in either; else
 * it takes none for its own queue's sake. It is ahead of the first domain by no more than makes it take from that one: what it did
 * while there was nobody to take gives others no claim.
 */
UNSPIN_PURE unspin_u64 unspin_own_standing(unspin_u64 own_ns, _Bool alone, unspin_u64 first_ns, unspin_u64 slice_ns)
{
	unspin_u64 least_ns = first_ns - unspin_plain_reach(slice_ns);
	unspin_u64 most_ns = first_ns + 2 * unspin_plain_reach(slice_ns);

	if (!alone || unspin_before(own_ns, least_ns))
		return least_ns;
	return unspin_before(most_ns, own_ns) ? most_ns : own_ns;
}

/*
 * The standing of the first domain, which all read: written only when it is behind by half a slice, so that its cache line stays
 * where it is.
 */
UNSPIN_PURE unspin_u64 unspin_first_standing(unspin_u64 first_ns, unspin_u64 ours_ns, unspin_u64 slice_ns)
{
	return unspin_before(first_ns + slice_ns / 2, ours_ns) ? ours_ns : first_ns;
}

#endif
