/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ecs_class.h - what a preempted vCPU was doing, by eCS's classes of preemption (ATC 2018, section 2; ruling 23).
 *
 * The guest keeps one counter for each kind of critical section, beside the paper's two sums (Figure 2). A preemption is
 * counted once, by the precedence below, and in a second table in every class that applies. LWP and BWW are not classes of
 * preemptions of holders: the one is of waiters (guest statistics), the other a latency.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_ECS_CLASS_H
#define UNSPIN_POLICY_CLASSIFY_ECS_CLASS_H

#include "../../abi/types.h"

/* In the order of precedence. */
enum unspin_ecs_class {
	UNSPIN_ECS_ICP = 0,    /* interrupt context preemption */
	UNSPIN_ECS_NB_LHP = 1, /* lock holder preemption, non-blocking lock: spinlock, rwlock held for writing */
	UNSPIN_ECS_RRP = 2,    /* RCU reader preemption */
	UNSPIN_ECS_B_LHP = 3,  /* lock holder preemption, blocking lock: mutex, rwsem held for writing */
	UNSPIN_ECS_RP = 4,     /* reader preemption: rwlock or rwsem held for reading */
	UNSPIN_ECS_NONE = 5,   /* in no critical section */
	UNSPIN_ECS_CLASSES = 6,
};

/* Critical sections that the vCPU is in, of each kind. */
struct unspin_ecs_counters {
	unspin_u32 spin;
	unspin_u32 rwlock_write;
	unspin_u32 rwlock_read;
	unspin_u32 rcu;
	unspin_u32 interrupt;
	unspin_u32 mutex;
	unspin_u32 rwsem_write;
	unspin_u32 rwsem_read;
};
UNSPIN_ASSERT_SIZE(struct unspin_ecs_counters, 32);

/* non_preemptable_ecs_count. Depths of nesting: the sums stay far below 2^32. */
static inline unspin_u32 unspin_ecs_non_preemptable(const struct unspin_ecs_counters *counters)
{
	return counters->spin + counters->rwlock_write + counters->rwlock_read + counters->rcu + counters->interrupt;
}

/* preemptable_ecs_count: of the task that runs; the guest saves and clears it when it switches tasks. */
static inline unspin_u32 unspin_ecs_preemptable(const struct unspin_ecs_counters *counters)
{
	return counters->mutex + counters->rwsem_write + counters->rwsem_read;
}

/* Every class that applies: bits 1 << enum unspin_ecs_class; UNSPIN_ECS_NONE alone when none does. */
static inline unspin_u32 unspin_ecs_classes(const struct unspin_ecs_counters *counters)
{
	unspin_u32 classes = 0;

	if (counters->interrupt)
		classes |= 1u << UNSPIN_ECS_ICP;
	if (counters->spin || counters->rwlock_write)
		classes |= 1u << UNSPIN_ECS_NB_LHP;
	if (counters->rcu)
		classes |= 1u << UNSPIN_ECS_RRP;
	if (counters->mutex || counters->rwsem_write)
		classes |= 1u << UNSPIN_ECS_B_LHP;
	if (counters->rwlock_read || counters->rwsem_read)
		classes |= 1u << UNSPIN_ECS_RP;
	return classes ? classes : 1u << UNSPIN_ECS_NONE;
}

/* The class that a preemption counts in: enum unspin_ecs_class. */
static inline unspin_u32 unspin_ecs_class(const struct unspin_ecs_counters *counters)
{
	if (counters->interrupt)
		return UNSPIN_ECS_ICP;
	if (counters->spin || counters->rwlock_write)
		return UNSPIN_ECS_NB_LHP;
	if (counters->rcu)
		return UNSPIN_ECS_RRP;
	if (counters->mutex || counters->rwsem_write)
		return UNSPIN_ECS_B_LHP;
	if (counters->rwlock_read || counters->rwsem_read)
		return UNSPIN_ECS_RP;
	return UNSPIN_ECS_NONE;
}

#endif
