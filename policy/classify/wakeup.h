/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * wakeup.h - what a woken task waited for until it ran (blocked-waiter wakeup, BWW: eCS, ATC 2018, section 2; ruling 23).
 *
 * Three parts that together are the whole time, always: exit and IPI, until the halted vCPU was out of HLT; the host's run
 * queue; the guest, behind its other tasks. Steal time shows how long the vCPU was in the host's queue, but not when: what it
 * was there before the wake-up is reported only with the rest. So the host's part of a stretch of time is what was stolen, and
 * never more than that stretch. In a HLT that makes up for it: a vCPU that was in the queue when the wake-up came was there until
 * HLT ended.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_WAKEUP_H
#define UNSPIN_POLICY_CLASSIFY_WAKEUP_H

#include "../../abi/types.h"

/* One wake-up: times by a TSC that all vCPUs share, and the steal time of the task's vCPU at them, nanoseconds. */
struct unspin_wakeup {
	unspin_u64 woken_tsc, woken_stolen_ns;
	unspin_u64 halt_end_tsc,
		halt_end_stolen_ns;	   /* of its last HLT; 0 or earlier than the wake-up: it was not halted */
	unspin_u64 now_tsc, now_stolen_ns; /* the task runs */
	unspin_u64 tsc_khz;		   /* cycles a millisecond; 0, unknown: nothing is the host's part */
};

/* Cycles; their sum is now_tsc - woken_tsc, or 0 if that is negative. */
struct unspin_wakeup_parts {
	unspin_u64 exit, host, guest;
};

#define UNSPIN_WAKEUP_STOLEN_NS_MAX (1ull << 40) /* 18 minutes: times any tsc_khz below 2^24 it fits */
#define UNSPIN_WAKEUP_TSC_KHZ_MAX ((1ull << 24) - 1)

/* `end - begin`, or 0 if that is negative: clocks of two vCPUs, and pages that a host writes. */
static inline unspin_u64 unspin_wakeup_since(unspin_u64 begin, unspin_u64 end)
{
	return end > begin ? end - begin : 0;
}

/* The host's part of `cycles` in which `stolen_ns` were stolen: at most all of them. */
static inline unspin_u64 unspin_wakeup_host(unspin_u64 cycles, unspin_u64 stolen_ns, unspin_u64 tsc_khz)
{
	unspin_u64 stolen;

	if (stolen_ns > UNSPIN_WAKEUP_STOLEN_NS_MAX)
		stolen_ns = UNSPIN_WAKEUP_STOLEN_NS_MAX;
	if (tsc_khz > UNSPIN_WAKEUP_TSC_KHZ_MAX)
		tsc_khz = UNSPIN_WAKEUP_TSC_KHZ_MAX;
	stolen = stolen_ns * tsc_khz / 1000000;
	return stolen < cycles ? stolen : cycles;
}

/* Splits a wake-up. */
static inline void unspin_wakeup_split(const struct unspin_wakeup *wakeup, struct unspin_wakeup_parts *parts)
{
	_Bool halted = wakeup->halt_end_tsc > wakeup->woken_tsc && wakeup->halt_end_tsc <= wakeup->now_tsc;
	unspin_u64 ready_tsc = halted ? wakeup->halt_end_tsc : wakeup->woken_tsc;
	unspin_u64 ready_stolen_ns = halted ? wakeup->halt_end_stolen_ns : wakeup->woken_stolen_ns;
	unspin_u64 first = ready_tsc - wakeup->woken_tsc, rest = unspin_wakeup_since(ready_tsc, wakeup->now_tsc);
	unspin_u64 first_host, rest_host;

	first_host = unspin_wakeup_host(first, unspin_wakeup_since(wakeup->woken_stolen_ns, ready_stolen_ns),
					wakeup->tsc_khz);
	rest_host =
		unspin_wakeup_host(rest, unspin_wakeup_since(ready_stolen_ns, wakeup->now_stolen_ns), wakeup->tsc_khz);
	parts->exit = first - first_host;
	parts->host = first_host + rest_host;
	parts->guest = rest - rest_host;
}

#endif
