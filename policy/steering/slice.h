/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * slice.h - how long a slice of a steered vCPU lasts, when that is not the kernel's own base_slice_ns.
 *
 * A policy of its own, so that a shorter slice cannot pass for a remedy (docs/method.md). Other tasks,
 * and vCPUs that policies do not touch, keep the kernel's. The kernel's slice ends at the first tick after it, as on the fair
 * class without HRTICK: base_slice_ns of 1.4 ms lasts 4 ms at 250 Hz. One that is asked for here ends on time also below a
 * tick: a timer is armed whenever the guest is entered on a slice. A slice that is passed on ends with it all the same.
 *
 * Bounds: what the kernel gives a task that asks for a slice, 0.1 to 100 ms (kernel/sched/fair.c,
 * __setparam_fair(), Linux 7.2).
 */
#ifndef UNSPIN_POLICY_STEERING_SLICE_H
#define UNSPIN_POLICY_STEERING_SLICE_H

#include "../contract.h"

#define UNSPIN_SLICE_MIN_NS 100000u
#define UNSPIN_SLICE_MAX_NS 100000000u

/* asked_ns: slice=TIME, 0: nothing was asked for; kernel_ns: base_slice_ns. */
UNSPIN_PURE unspin_u64 length_of_slice(unspin_u32 asked_ns, unspin_u64 kernel_ns)
{
	if (asked_ns == 0)
		return kernel_ns;
	if (asked_ns < UNSPIN_SLICE_MIN_NS)
		return UNSPIN_SLICE_MIN_NS;
	return asked_ns < UNSPIN_SLICE_MAX_NS ? asked_ns : UNSPIN_SLICE_MAX_NS;
}

#endif
