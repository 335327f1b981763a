/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * all.h - every lock of lock_kinds.h, and a table of their operations by which a driver picks a lock by its number.
 *
 * Include it in one file of a program only: that file holds the table. A driver that must inline the calls expands
 * UNSPIN_LOCK_KINDS itself instead.
 */
#ifndef UNSPIN_LOCKS_ALL_H
#define UNSPIN_LOCKS_ALL_H

#include "../abi/guest/lock_kinds.h"
#include "blocking/adaptive_mutex.h"
#include "blocking/adaptive_rwlock.h"
#include "clh.h"
#include "parts/ecs.h"
#include "helping.h"
#include "helping_named.h"
#include "mcs.h"
#include "mutex_eschdspin.h"
#include "mutex_schdspin.h"
#include "paravirtual_preemptable_ticket.h"
#include "paravirtual_qspinlock.h"
#include "paravirtual_ticket.h"
#include "platform/contract.h"
#include "preemptable_ticket.h"
#include "qspinlock.h"
#include "rwlock.h"
#include "rwsem_eschdspin.h"
#include "rwsem_schdspin.h"
#include "test_and_set.h"
#include "test_and_test_and_set.h"
#include "ticket.h"

#define LOCK_MEMBER(number, name) struct name##_lock name;
/* Storage for a lock of any kind, on its own cache lines. */
union any_lock {
	UNSPIN_LOCK_KINDS(LOCK_MEMBER)
} __attribute__((aligned(64)));
#undef LOCK_MEMBER

#define LOCK_BYTES(number, name) [number] = sizeof(struct name##_lock),
/* Size in bytes of a lock of each kind, by enum unspin_lock_kind. */
static const unspin_u32 lock_bytes[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_KINDS(LOCK_BYTES)};
#undef LOCK_BYTES

/*
 * NAME_read_lock() and so on for every lock; for locks without readers these are the exclusive functions.
 */
#define LOCK_EXCLUDES(name)                                                                                            \
	static inline void name##_read_lock(struct name##_lock *lock)                                                  \
	{                                                                                                              \
		name##_lock(lock);                                                                                     \
	}                                                                                                              \
	static inline _Bool name##_read_trylock(struct name##_lock *lock)                                              \
	{                                                                                                              \
		return name##_trylock(lock);                                                                           \
	}                                                                                                              \
	static inline void name##_read_unlock(struct name##_lock *lock)                                                \
	{                                                                                                              \
		name##_unlock(lock);                                                                                   \
	}
LOCK_EXCLUDES(test_and_set)
LOCK_EXCLUDES(test_and_test_and_set)
LOCK_EXCLUDES(ticket)
LOCK_EXCLUDES(preemptable_ticket)
LOCK_EXCLUDES(paravirtual_ticket)
LOCK_EXCLUDES(paravirtual_preemptable_ticket)
LOCK_EXCLUDES(mcs)
LOCK_EXCLUDES(clh)
LOCK_EXCLUDES(qspinlock)
LOCK_EXCLUDES(paravirtual_qspinlock)
LOCK_EXCLUDES(helping)
LOCK_EXCLUDES(helping_named)
LOCK_EXCLUDES(mutex)
LOCK_EXCLUDES(mutex_schdspin)
LOCK_EXCLUDES(mutex_eschdspin)
LOCK_EXCLUDES(adaptive_mutex)
#undef LOCK_EXCLUDES

/* The operations of a lock; each as the lock's header documents NAME_init, NAME_lock and so on. */
struct lock_operations {
	void (*init)(union any_lock *lock);
	void (*lock)(union any_lock *lock);
	_Bool (*trylock)(union any_lock *lock);
	_Bool (*is_locked)(const union any_lock *lock);
	void (*unlock)(union any_lock *lock);
	void (*read_lock)(union any_lock *lock);
	_Bool (*read_trylock)(union any_lock *lock);
	void (*read_unlock)(union any_lock *lock);
};

/* The locks in lock_operations; whoever drives one only defines this as that one, and compiles its code alone. */
#ifndef UNSPIN_LOCKS_IN_TABLE
#define UNSPIN_LOCKS_IN_TABLE UNSPIN_LOCK_KINDS
#endif

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
	}                                                                                                              \
	static void any_##name##_read_lock(union any_lock *lock)                                                       \
	{                                                                                                              \
		name##_read_lock(&lock->name);                                                                         \
	}                                                                                                              \
	static _Bool any_##name##_read_trylock(union any_lock *lock)                                                   \
	{                                                                                                              \
		return name##_read_trylock(&lock->name);                                                               \
	}                                                                                                              \
	static void any_##name##_read_unlock(union any_lock *lock)                                                     \
	{                                                                                                              \
		name##_read_unlock(&lock->name);                                                                       \
	}
UNSPIN_LOCKS_IN_TABLE(LOCK_CALLS)
#undef LOCK_CALLS

#define LOCK_ROW(number, name)                                                                                         \
	[number] = {any_##name##_init,	 any_##name##_lock,	 any_##name##_trylock,	    any_##name##_is_locked,    \
		    any_##name##_unlock, any_##name##_read_lock, any_##name##_read_trylock, any_##name##_read_unlock},
/*
 * By enum unspin_lock_kind. The caller must check that its number is below UNSPIN_LOCK_KIND_COUNT. A lock that is not in the table
 * has null pointers.
 */
static const struct lock_operations lock_operations[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCKS_IN_TABLE(LOCK_ROW)};
#undef LOCK_ROW

/*
 * The eCS class (ruling 23) in which a critical section under a lock of this kind counts, held exclusively or shared.
 */
static inline enum unspin_section_class lock_class(unspin_u32 kind, _Bool shared)
{
	switch (kind) {
	case UNSPIN_LOCK_rwlock:
		return shared ? UNSPIN_SECTION_RWLOCK_READ : UNSPIN_SECTION_RWLOCK_WRITE;
	case UNSPIN_LOCK_mutex:
	case UNSPIN_LOCK_mutex_schdspin:
	case UNSPIN_LOCK_mutex_eschdspin:
	case UNSPIN_LOCK_adaptive_mutex:
		return UNSPIN_SECTION_MUTEX;
	case UNSPIN_LOCK_adaptive_rwlock:
	case UNSPIN_LOCK_rwsem:
	case UNSPIN_LOCK_rwsem_schdspin:
	case UNSPIN_LOCK_rwsem_eschdspin:
		return shared ? UNSPIN_SECTION_RWSEM_READ : UNSPIN_SECTION_RWSEM_WRITE;
	default:
		return UNSPIN_SECTION_SPIN;
	}
}

#endif
