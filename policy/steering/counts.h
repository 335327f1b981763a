/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * counts.h - whether a vCPU is in a critical section, by its Linux kernel's own counts (ruling 26).
 *
 * __preempt_count is raised by spinlocks and reader-writer locks before the lock is asked for and lowered after unlock, by
 * soft and by hard interrupts: so it covers waiters and holders alike, and does not distinguish them. Bit 31 is none of
 * the count (PREEMPT_NEED_RESCHED, kept inverted: arch/x86/include/asm/preempt.h, Linux 7.2). The idle task runs with one
 * more than it holds (PREEMPT_DISABLED, init_idle_preempt_count() there). Readers of preemptible RCU are counted in the task
 * (rcu_read_lock_nesting, include/linux/rcupdate.h), mutexes and rwsems nowhere: `sleeping` is known with hooks only.
 */
#ifndef UNSPIN_POLICY_STEERING_COUNTS_H
#define UNSPIN_POLICY_STEERING_COUNTS_H

#include "../contract.h"

#define UNSPIN_PREEMPT_NEED_RESCHED 0x80000000u
#define UNSPIN_PF_IDLE 0x00000002u		/* include/linux/sched.h, Linux 7.2: I am an IDLE thread */
#define UNSPIN_RCU_NESTING_NEGATIVE 0x80000000u /* the kernel's word is signed: this bit makes it no depth */

/* What was read of one CPU. */
struct unspin_counts_seen {
	unspin_u32 preempt_count;
	unspin_u32 task_flags;	/* of the task that runs; 0: not known */
	unspin_u32 rcu_nesting; /* the same */
	unspin_u32 sleeping;
};

/* The fact `critical`: kinds of critical sections that it is in, 0 for none. */
UNSPIN_PURE unspin_u32 unspin_counts_critical(const struct unspin_counts_seen *seen)
{
	unspin_u32 depth = seen->preempt_count & ~UNSPIN_PREEMPT_NEED_RESCHED;
	unspin_u32 idle = seen->task_flags & UNSPIN_PF_IDLE ? 1 : 0;
	_Bool reads = seen->rcu_nesting && !(seen->rcu_nesting & UNSPIN_RCU_NESTING_NEGATIVE);

	return (depth > idle) + reads + (seen->sleeping != 0);
}

#endif
