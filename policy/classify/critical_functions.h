/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * critical_functions.h - functions of a Linux guest that run inside a critical section from their first instruction to their
 * last, by eCS's classes (ruling 23).
 *
 * That a guest's instruction pointer alone shows critical sections is known (Ahn, Park and Huh, "Accelerating Critical OS
 * Services in Virtualized Systems with Flexible Micro-sliced Cores", EuroSys 2018); this list is ours, read from Linux 7.2.
 * A function is on it when a CPU that executes it waits for a spinlock, holds one, or is in an interrupt; not when it may or may
 * not. So what this form sees is a part only: the body of a section, in whatever function it lies, is not seen. Suffixes that
 * compilers add (".constprop.0", ".cold") are cut off; a name that ends in * stands for all that begin so.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_CRITICAL_FUNCTIONS_H
#define UNSPIN_POLICY_CLASSIFY_CRITICAL_FUNCTIONS_H

#include "ecs_class.h"

#define UNSPIN_CRITICAL_FUNCTIONS(X)                                                                                     \
	/* kernel/locking/spinlock.c; not unlock: interrupts come where it enables them again, after the lock is free */ \
	X("_raw_spin_lock*", NB_LHP)                                                                                     \
	X("_raw_spin_trylock*", NB_LHP)                                                                                  \
	X("_raw_write_lock*", NB_LHP)                                                                                    \
	X("_raw_read_lock*", RP)                                                                                         \
	/* kernel/locking/qspinlock.c, qrwlock.c, arch/x86/kernel/paravirt-spinlocks.c */                                \
	X("native_queued_spin_lock_slowpath", NB_LHP)                                                                    \
	X("__pv_queued_spin_lock_slowpath", NB_LHP)                                                                      \
	X("queued_spin_lock_slowpath", NB_LHP)                                                                           \
	X("__raw_callee_save___pv_queued_spin_unlock", NB_LHP)                                                           \
	X("__pv_queued_spin_unlock_slowpath", NB_LHP)                                                                    \
	X("queued_write_lock_slowpath", NB_LHP)                                                                          \
	X("queued_read_lock_slowpath", RP)                                                                               \
	/* kernel/sched/core.c, fair.c: the run queue's lock is held */                                                  \
	X("ttwu_do_activate", NB_LHP)                                                                                    \
	X("wakeup_preempt", NB_LHP)                                                                                      \
	X("resched_curr", NB_LHP)                                                                                        \
	X("update_rq_clock", NB_LHP)                                                                                     \
	X("enqueue_task_fair", NB_LHP)                                                                                   \
	X("dequeue_task_fair", NB_LHP)                                                                                   \
	X("dequeue_entities", NB_LHP)                                                                                    \
	X("pick_next_task_fair", NB_LHP)                                                                                 \
	X("enqueue_entity", NB_LHP)                                                                                      \
	X("dequeue_entity", NB_LHP)                                                                                      \
	X("update_curr", NB_LHP)                                                                                         \
	X("__schedule", NB_LHP)                                                                                          \
	/* kernel/smp.c, arch/x86/mm/tlb.c, arch/x86/kernel/apic/: preemption is off while answers are waited for */     \
	X("smp_call_function_many_cond", NB_LHP)                                                                         \
	X("smp_call_function_single", NB_LHP)                                                                            \
	X("native_flush_tlb_multi", NB_LHP)                                                                              \
	X("flush_tlb_func", NB_LHP)                                                                                      \
	/* kernel/softirq.c, arch/x86/kernel/irq.c, arch/x86/entry/: interrupts */                                       \
	X("handle_softirqs", ICP)                                                                                        \
	X("__do_softirq", ICP)                                                                                           \
	X("__irq_exit_rcu", ICP)                                                                                         \
	X("sysvec_*", ICP)                                                                                               \
	X("__sysvec_*", ICP)                                                                                             \
	X("asm_sysvec_*", ICP)                                                                                           \
	X("common_interrupt", ICP)                                                                                       \
	X("asm_common_interrupt", ICP)                                                                                   \
	X("__common_interrupt", ICP)                                                                                     \
	X("generic_smp_call_function_single_interrupt", ICP)                                                             \
	X("__flush_smp_call_function_queue", ICP)                                                                        \
	X("hrtimer_interrupt", ICP)                                                                                      \
	X("tick_nohz_handler", ICP)                                                                                      \
	X("sched_tick", ICP)                                                                                             \
	X("rcu_sched_clock_irq", ICP)                                                                                    \
	X("rcu_core", ICP)

/* Whether a symbol is the function, or one of those, that `pattern` names. */
static inline _Bool unspin_is_critical_function(const char *symbol, const char *pattern)
{
	unspin_u32 i = 0;

	/* In bounds: both end with a 0, and the loop ends at the first. */
	while (pattern[i] && pattern[i] != '*' && symbol[i] == pattern[i])
		i++;
	return pattern[i] == '*' || (pattern[i] == 0 && (symbol[i] == 0 || symbol[i] == '.'));
}

/* enum unspin_ecs_class of the function of that name, a C string; UNSPIN_ECS_NONE: of no class. */
static inline unspin_u32 unspin_critical_function(const char *symbol)
{
#define UNSPIN_TEST_CRITICAL(pattern, class)                                                                           \
	if (unspin_is_critical_function(symbol, pattern))                                                              \
		return UNSPIN_ECS_##class;
	UNSPIN_CRITICAL_FUNCTIONS(UNSPIN_TEST_CRITICAL)
#undef UNSPIN_TEST_CRITICAL
	return UNSPIN_ECS_NONE;
}

#endif
