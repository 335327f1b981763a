/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * lock_kinds.h - the locks that a scenario can name, each once.
 *
 * X(NUMBER, name): NUMBER is the value of guest_parameters.lock_kind and never changes its meaning; `name` is the
 * word in scenarios, tables and function names (name_lock, name_trylock, name_is_locked, name_unlock in
 * locks/NAME.h). To add a lock, add a line here and a header in locks/.
 */
#ifndef UNSPIN_ABI_GUEST_LOCK_KINDS_H
#define UNSPIN_ABI_GUEST_LOCK_KINDS_H

#define UNSPIN_LOCK_KINDS(X)                                                                                           \
	X(0, test_and_set)                                                                                             \
	X(1, test_and_test_and_set)                                                                                    \
	X(2, ticket)                                                                                                   \
	X(3, preemptable_ticket)                                                                                       \
	X(4, paravirtual_ticket)                                                                                       \
	X(5, paravirtual_preemptable_ticket)                                                                           \
	X(6, mcs)                                                                                                      \
	X(7, clh)                                                                                                      \
	X(8, qspinlock)                                                                                                \
	X(9, paravirtual_qspinlock)                                                                                    \
	X(10, helping)                                                                                                 \
	X(11, helping_named)                                                                                           \
	X(12, rwlock)                                                                                                  \
	X(13, mutex)                                                                                                   \
	X(14, mutex_schdspin)                                                                                          \
	X(15, mutex_eschdspin)                                                                                         \
	X(16, rwsem)                                                                                                   \
	X(17, rwsem_schdspin)                                                                                          \
	X(18, rwsem_eschdspin)                                                                                         \
	X(19, adaptive_mutex)                                                                                          \
	X(20, adaptive_rwlock)

/* What a lock is like: bits. Every lock excludes by name_lock and has the four functions above. */
enum unspin_lock_trait {
	UNSPIN_LOCK_SHARES =
		1, /* readers may be inside together: name_read_lock, name_read_trylock, name_read_unlock */
	UNSPIN_LOCK_BLOCKS = 2,	  /* its waiters sleep as tasks: not inside a spinning lock, not in a handler */
	UNSPIN_LOCK_IN_ORDER = 4, /* first come, first served */
	UNSPIN_LOCK_PARKS = 8,	  /* its waiters halt their vCPU */
	/* no unlock accesses the lock once another may have it: who had it last may give its memory back (POSIX) */
	UNSPIN_LOCK_FREES_LAST = 16,
};

/* X(name, traits) for those that have any. */
#define UNSPIN_LOCK_TRAITS(X)                                                                                          \
	X(test_and_set, UNSPIN_LOCK_FREES_LAST)                                                                        \
	X(test_and_test_and_set, UNSPIN_LOCK_FREES_LAST)                                                               \
	X(ticket, UNSPIN_LOCK_IN_ORDER | UNSPIN_LOCK_FREES_LAST)                                                       \
	X(preemptable_ticket, UNSPIN_LOCK_FREES_LAST)                                                                  \
	X(paravirtual_ticket, UNSPIN_LOCK_IN_ORDER | UNSPIN_LOCK_PARKS)                                                \
	X(paravirtual_preemptable_ticket, UNSPIN_LOCK_PARKS)                                                           \
	X(mcs, UNSPIN_LOCK_IN_ORDER)                                                                                   \
	X(clh, UNSPIN_LOCK_IN_ORDER)                                                                                   \
	X(qspinlock, UNSPIN_LOCK_FREES_LAST)                                                                           \
	X(paravirtual_qspinlock, UNSPIN_LOCK_PARKS | UNSPIN_LOCK_FREES_LAST)                                           \
	X(helping, UNSPIN_LOCK_IN_ORDER | UNSPIN_LOCK_FREES_LAST)                                                      \
	X(helping_named, UNSPIN_LOCK_FREES_LAST)                                                                       \
	X(rwlock, UNSPIN_LOCK_SHARES | UNSPIN_LOCK_FREES_LAST)                                                         \
	X(mutex, UNSPIN_LOCK_BLOCKS)                                                                                   \
	X(mutex_schdspin, UNSPIN_LOCK_BLOCKS)                                                                          \
	X(mutex_eschdspin, UNSPIN_LOCK_BLOCKS)                                                                         \
	X(rwsem, UNSPIN_LOCK_SHARES | UNSPIN_LOCK_BLOCKS)                                                              \
	X(rwsem_schdspin, UNSPIN_LOCK_SHARES | UNSPIN_LOCK_BLOCKS)                                                     \
	X(rwsem_eschdspin, UNSPIN_LOCK_SHARES | UNSPIN_LOCK_BLOCKS)                                                    \
	X(adaptive_mutex, UNSPIN_LOCK_BLOCKS | UNSPIN_LOCK_FREES_LAST)                                                 \
	X(adaptive_rwlock, UNSPIN_LOCK_SHARES | UNSPIN_LOCK_BLOCKS | UNSPIN_LOCK_FREES_LAST)

#define UNSPIN_LOCK_ENUM(number, name) UNSPIN_LOCK_##name = (number),
enum unspin_lock_kind { UNSPIN_LOCK_KINDS(UNSPIN_LOCK_ENUM) UNSPIN_LOCK_KIND_COUNT };

#endif
