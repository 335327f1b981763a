/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * levers.h - what the controller (controller.h) chooses among where the host's own scheduler stays: `unspin tune`.
 *
 * A vCPU's thread may have a slice of its own (sched_setattr()'s runtime, kernel/sched/syscalls.c, Linux 6.12 and later; 0.1 to 100 ms,
 * __setparam_fair(), kernel/sched/fair.c, Linux 7.2). Where a lock's next waiter has lost its CPU, a short one brings its turn sooner:
 * it waits for the slices of those before it. A long one has fewer vCPUs lose their CPU in the middle of a critical section.
 */
#ifndef UNSPIN_POLICY_AUTO_LEVERS_H
#define UNSPIN_POLICY_AUTO_LEVERS_H

#include "controller.h"

/*
 * The slice that goes with a set's number, ns; 0: the kernel's own, with which a VM begins. In the order in which the controller
 * tries sets of a guest that spins in its kernel. Ours.
 */
static inline unspin_u32 unspin_auto_slice_ns(unspin_u32 set)
{
	static const unspin_u32 slices_ns[UNSPIN_AUTO_SET_COUNT] = {0, 100000, 300000, 10000000};

	return set < UNSPIN_AUTO_SET_COUNT ? slices_ns[set] : 0;
}

#endif
