/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * gang.h - to which CPUs siblings are called (policy/steering/gang.h): the conditions that need no policy.
 *
 * The caller goes through CPUs and siblings in ascending order; each CPU whose slice may be cut gets one sibling. A call lasts
 * UNSPIN_BUDGET_NS: one that is not taken up by then is lost, and the sibling still waits in its queue.
 */
#ifndef UNSPIN_POLICY_MECHANICS_GANG_H
#define UNSPIN_POLICY_MECHANICS_GANG_H

#include "../steering/gang.h"
#include "virtual_time.h"

/* What runs on a CPU. Other CPUs read it: a race makes a cut come to nothing, or a moment early. */
struct unspin_gang_place {
	unspin_u64 vm;	     /* a number: the VM whose vCPU runs here; 0: no vCPU, or one that is not to be cut */
	unspin_u64 since_ns; /* when the slice began that it runs in, its own or not */
};
UNSPIN_ASSERT_SIZE(struct unspin_gang_place, 16);

/* The VM for which a slice may be cut; of time that is borrowed none is: its borrower is in a critical section. */
UNSPIN_PURE unspin_u64 unspin_gang_vm(unspin_u64 vm, _Bool borrows)
{
	return borrows ? 0 : vm;
}

/* Whether the slice that runs there may be cut for that VM; `called`: another sibling is called there already. */
UNSPIN_PURE _Bool unspin_gang_may_cut(const struct unspin_gang_place *there, _Bool called, unspin_u64 vm,
				      unspin_u64 now_ns)
{
	return there->vm && there->vm != vm && !called && gang_cuts(now_ns - there->since_ns);
}

/* Until when a call made now is to be taken up. */
UNSPIN_PURE unspin_u64 unspin_called_until(unspin_u64 now_ns)
{
	return now_ns + UNSPIN_BUDGET_NS;
}

/* Whether a call until then still stands: of a CPU, that it is taken up; of a sibling, that no other CPU calls it. */
UNSPIN_PURE _Bool unspin_is_called(unspin_u64 called_until_ns, unspin_u64 now_ns)
{
	return unspin_before(now_ns, called_until_ns);
}

#endif
