/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * all.h - every lock of lock_kinds.h, and a table of their operations so that a driver picks one by its number.
 *
 * Include it in one file of a program: that file holds the table. A driver that wants the calls inlined expands
 * UNSPIN_LOCK_KINDS itself instead.
 */
#ifndef UNSPIN_LOCKS_ALL_H
#define UNSPIN_LOCKS_ALL_H

#include "../abi/lock_kinds.h"
#include "clh.h"
#include "helping.h"
#include "helping_named.h"
#include "mcs.h"
#include "paravirtual_preemptable_ticket.h"
#include "paravirtual_qspinlock.h"
#include "paravirtual_ticket.h"
#include "platform.h"
#include "preemptable_ticket.h"
#include "qspinlock.h"
#include "test_and_set.h"
#include "test_and_test_and_set.h"
#include "ticket.h"

#define LOCK_MEMBER(number, name) struct name##_lock name;
/* Room for a lock of any kind, on a cache line of its own. */
union any_lock {
	UNSPIN_LOCK_KINDS(LOCK_MEMBER)
} __attribute__((aligned(64)));
#undef LOCK_MEMBER

#define LOCK_BYTES(number, name) [number] = sizeof(struct name##_lock),
/* Of a lock of a kind alone, by enum unspin_lock_kind. */
static const unspin_u32 lock_bytes[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_KINDS(LOCK_BYTES)};
#undef LOCK_BYTES

/* What each lock header says of NAME_init, NAME_lock and so on holds here. */
struct lock_operations {
	void (*init)(union any_lock *lock);
	void (*lock)(union any_lock *lock);
	_Bool (*trylock)(union any_lock *lock);
	_Bool (*is_locked)(const union any_lock *lock);
	void (*unlock)(union any_lock *lock);
};

#define LOCK_CALLS(number, name)                                                                                       \
	static void any_##name##_init(union any_lock *lock)                                                            \
	{                                                                                                              \
		name##_init(&lock->name);                                                                              \
	}                                                                                                              \
	static void any_##name##_lock(union any_lock *lock)                                                            \
	{                                                                                                              \
		name##_lock(&lock->name);                                                                              \
	}                                                                                                              \
	static _Bool any_##name##_trylock(union any_lock *lock)                                                        \
	{                                                                                                              \
		return name##_trylock(&lock->name);                                                                    \
	}                                                                                                              \
	static _Bool any_##name##_is_locked(const union any_lock *lock)                                                \
	{                                                                                                              \
		return name##_is_locked(&lock->name);                                                                  \
	}                                                                                                              \
	static void any_##name##_unlock(union any_lock *lock)                                                          \
	{                                                                                                              \
		name##_unlock(&lock->name);                                                                            \
	}
UNSPIN_LOCK_KINDS(LOCK_CALLS)
#undef LOCK_CALLS

#define LOCK_ROW(number, name)                                                                                         \
	[number] = {any_##name##_init, any_##name##_lock, any_##name##_trylock, any_##name##_is_locked,                \
		    any_##name##_unlock},
/* By enum unspin_lock_kind; a number of UNSPIN_LOCK_KIND_COUNT or more is the caller's to refuse. */
static const struct lock_operations lock_operations[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_KINDS(LOCK_ROW)};
#undef LOCK_ROW

#endif
