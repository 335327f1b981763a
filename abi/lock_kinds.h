/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * lock_kinds.h - the locks that a scenario can name, each once.
 *
 * X(NUMBER, name): NUMBER is the value of guest_parameters.lock_kind and never changes its meaning; `name` is the
 * word in scenarios, tables and function names (name_lock, name_trylock, name_is_locked, name_unlock in
 * locks/name.h). To add a lock, add a line here and a header in locks/.
 */
#ifndef UNSPIN_ABI_LOCK_KINDS_H
#define UNSPIN_ABI_LOCK_KINDS_H

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
	X(11, helping_named)

#define UNSPIN_LOCK_ENUM(number, name) UNSPIN_LOCK_##name = (number),
enum unspin_lock_kind { UNSPIN_LOCK_KINDS(UNSPIN_LOCK_ENUM) UNSPIN_LOCK_KIND_COUNT };

#endif
