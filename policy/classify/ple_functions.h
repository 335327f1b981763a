/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ple_functions.h - functions of a Linux guest in which vCPUs spin, and what each waits for.
 *
 * The first block is Table 3 of VEE'21 (guest 4.15), whole. The second has today's names (Linux 7.2): where a function was
 * renamed or split since, and what is new. Suffixes that compilers add (".constprop.0", ".cold") are cut off.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_PLE_FUNCTIONS_H
#define UNSPIN_POLICY_CLASSIFY_PLE_FUNCTIONS_H

#include "ple_reason.h"

#define UNSPIN_PLE_FUNCTIONS(X)                                                                                        \
	X(d_alloc_parallel, SPINLOCK)                                                                                  \
	X(d_lookup, SPINLOCK)                                                                                          \
	X(do_get_write_access, SPINLOCK)                                                                               \
	X(hrtimer_active, SPINLOCK)                                                                                    \
	X(jbd2_journal_dirty_metadata, SPINLOCK)                                                                       \
	X(jbd2_journal_file_buffer, SPINLOCK)                                                                          \
	X(jbd2_journal_write_metadata_buffer, SPINLOCK)                                                                \
	X(ktime_get, SPINLOCK)                                                                                         \
	X(ktime_get_snapshot, SPINLOCK)                                                                                \
	X(ktime_get_ts64, SPINLOCK)                                                                                    \
	X(ktime_get_update_offsets_now, SPINLOCK)                                                                      \
	X(ktime_get_with_offset, SPINLOCK)                                                                             \
	X(mutex_spin_on_owner, SPINLOCK)                                                                               \
	X(native_queued_spin_lock_slowpath, SPINLOCK)                                                                  \
	X(osq_lock, SPINLOCK)                                                                                          \
	X(path_init, SPINLOCK)                                                                                         \
	X(queued_write_lock_slowpath, SPINLOCK)                                                                        \
	X(queued_read_lock_slowpath, SPINLOCK)                                                                         \
	X(rwsem_spin_on_owner, SPINLOCK)                                                                               \
	X(rwsem_down_write_failed, SPINLOCK)                                                                           \
	X(rwsem_down_write_failed_killable, SPINLOCK)                                                                  \
	X(tick_nohz_next_event, SPINLOCK)                                                                              \
	X(try_to_wake_up, SPINLOCK)                                                                                    \
	X(smp_call_function_many, FUNCTION_CALL)                                                                       \
	X(smp_call_function_single, FUNCTION_CALL)                                                                     \
	X(delay_tsc, DELAY)                                                                                            \
	/* Linux 7.2: kernel/locking/, kernel/smp.c, arch/x86/lib/delay.c, kernel/bpf/rqspinlock.c */                  \
	X(__pv_queued_spin_lock_slowpath, SPINLOCK)                                                                    \
	X(queued_spin_lock_slowpath, SPINLOCK)                                                                         \
	X(resilient_queued_spin_lock_slowpath, SPINLOCK)                                                               \
	X(rwsem_optimistic_spin, SPINLOCK)                                                                             \
	X(rwsem_down_write_slowpath, SPINLOCK)                                                                         \
	X(__mutex_lock, SPINLOCK)                                                                                      \
	X(smp_call_function_many_cond, FUNCTION_CALL)                                                                  \
	X(delay_loop, DELAY)                                                                                           \
	X(delay_halt_tpause, DELAY)

/* Whether a symbol is that function: equal up to the symbol's end or to the dot before a compiler's suffix. */
static inline _Bool unspin_is_function(const char *symbol, const char *function)
{
	unspin_u32 i = 0;

	/* In bounds: both end with a 0, and the loop ends at the first. */
	while (function[i] && symbol[i] == function[i])
		i++;
	return function[i] == 0 && (symbol[i] == 0 || symbol[i] == '.');
}

/* What the function of that name, a C string, waits for: enum unspin_ple_symbol, never UNSPIN_SYMBOL_NONE. */
static inline unspin_u32 unspin_ple_symbol_of(const char *symbol)
{
#define UNSPIN_TEST(function, purpose)                                                                                 \
	if (unspin_is_function(symbol, #function))                                                                     \
		return UNSPIN_SYMBOL_##purpose;
	UNSPIN_PLE_FUNCTIONS(UNSPIN_TEST)
#undef UNSPIN_TEST
	return UNSPIN_SYMBOL_OTHER;
}

#endif
