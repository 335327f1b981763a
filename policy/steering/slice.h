/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * slice.h - how long a slice of a steered vCPU lasts.
 *
 * Slices end on time, as on the fair class with HRTICK (on since Linux 7.1): a task of the host, and a vCPU that policies do not
 * touch, has the kernel's base_slice_ns. A vCPU may have another one, named as a policy of its own (slice=TIME), so that a shorter
 * slice cannot pass for a remedy (docs/method.md). Under a policy that lends, a lock's waiters do not wait for the end of a
 * slice, nor do receivers of an interrupt that KVM or a rule of candidates proposes. Each end costs a switch and may stop a
 * vCPU with a lock, so there a slice lasts as long as on the fair class without HRTICK, for those vCPUs that are seen to use
 * locks (docs/decisions/scheduler.md#slices): a guest that waits for other things waits for ends of slices.
 *
 * Bounds of what is asked for: what the kernel gives a task that asks for a slice, 0.1 to 100 ms (kernel/sched/fair.c,
 * __setparam_fair(), Linux 7.2).
 */
#ifndef UNSPIN_POLICY_STEERING_SLICE_H
#define UNSPIN_POLICY_STEERING_SLICE_H

#include "../contract.h"

#define UNSPIN_SLICE_MIN_NS 100000u
#define UNSPIN_SLICE_MAX_NS 100000000u

/* Of a vCPU that uses locks under a policy that lends, unless the kernel's is longer: to the tick at CONFIG_HZ=250 (UNSPIN_TICK_NS). */
#define UNSPIN_LENDING_SLICE_NS 4000000u

/*
 * A vCPU is seen to use locks where it lends for one or is lent to, and where its slice ends while its guest itself says that it
 * is in a critical section; and counts as one that does for so long after: 50 long slices. Ours.
 */
#define UNSPIN_USES_LOCKS_NS 200000000u

/*
 * One that spins where a receiver of an interrupt is proposed (answer.h) waits for ends of slices, whatever locks it uses besides:
 * this slice of its own and the next one, which is not a long one, count as slices in which it waits for answers. Ours.
 */
#define UNSPIN_ANSWER_SLICES 2u
_Static_assert(UNSPIN_ANSWER_SLICES / 2 == 1, "unspin_answer_slices_left() gives 0 or 1");

/* As a slice of its own begins; answer_slices: UNSPIN_ANSWER_SLICES when it spun so last. */
UNSPIN_PURE unspin_u32 unspin_answer_slices_left(unspin_u32 answer_slices)
{
	return answer_slices / 2; /* 2, 1, 0: a branch would be walked twice by the verifier */
}

/*
 * As a slice of its own begins, whether it is that of a vCPU which uses locks. lock_ns: when that was seen last; 0: never;
 * answer_slices: 0 or 1 (above), tested without a branch as well.
 */
UNSPIN_PURE _Bool unspin_uses_locks(unspin_u64 lock_ns, unspin_u64 now_ns, unspin_u32 answer_slices)
{
	lock_ns &= (unspin_u64)answer_slices - 1;
	return lock_ns != 0 && now_ns - lock_ns < UNSPIN_USES_LOCKS_NS;
}

/* asked_ns: slice=TIME, 0: nothing was asked for; kernel_ns: base_slice_ns; lends: a policy that lends is on, and the vCPU uses locks. */
UNSPIN_PURE unspin_u64 length_of_slice(unspin_u32 asked_ns, unspin_u64 kernel_ns, _Bool lends)
{
	if (asked_ns == 0)
		return lends && kernel_ns < UNSPIN_LENDING_SLICE_NS ? UNSPIN_LENDING_SLICE_NS : kernel_ns;
	if (asked_ns < UNSPIN_SLICE_MIN_NS)
		return UNSPIN_SLICE_MIN_NS;
	return asked_ns < UNSPIN_SLICE_MAX_NS ? asked_ns : UNSPIN_SLICE_MAX_NS;
}

#endif
