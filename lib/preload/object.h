/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * object.h - pthread's objects as this library uses their memory, in place.
 *
 * What libc's init functions and static initialisers leave in an object says what it is: those fields stay where libc has
 * them (process.c checks at the start that they are there), all others are ours. An object of zero bytes is a default one.
 */
#ifndef UNSPIN_LIB_PRELOAD_OBJECT_H
#define UNSPIN_LIB_PRELOAD_OBJECT_H

/* First: it says what lib/process.h counts. */
#include "common.h"

#include "../../locks/blocking/adaptive_rwlock.h"

/* nptl/pthreadP.h, glibc 2.36: bits of __kind. A mutex with others than these two and elision is left to libc. */
#define PRELOAD_MUTEX_TYPE 3
#define PRELOAD_MUTEX_ELISION 0x300
#define PRELOAD_MUTEX_ROBUST 0x10
#define PRELOAD_MUTEX_PRIORITY 0x60
#define PRELOAD_MUTEX_SHARED 0x80
/* What pthread_mutex_destroy() leaves. */
#define PRELOAD_MUTEX_DESTROYED (-1)

struct preload_mutex {
	struct adaptive_mutex_lock lock;
	int owner;	    /* of recursive and error-checking ones: number of the holder; 0: none */
	unsigned int depth; /* of recursive ones: how often the owner holds it */
	int kind;
};
_Static_assert(offsetof(struct preload_mutex, kind) == offsetof(pthread_mutex_t, __data.__kind), "__kind has moved");
_Static_assert(sizeof(struct preload_mutex) <= sizeof(pthread_mutex_t), "no room in a pthread_mutex_t");

/* nptl/pthread_cond_common.c, glibc 2.36: bits of __wrefs. */
#define PRELOAD_CONDITION_SHARED 1u
#define PRELOAD_CONDITION_MONOTONIC 2u

struct preload_condition {
	struct platform_word sequence; /* changes at each signal that wakes; waiters block on it */
	unsigned int unused;
	unsigned long long waiters; /* condition.c */
};
_Static_assert(sizeof(struct preload_condition) <= offsetof(pthread_cond_t, __data.__wrefs),
	       "no room in a pthread_cond_t");

struct preload_rwlock {
	struct adaptive_rwlock_lock lock;
	unsigned int unused[2];
	int writer; /* number of the thread that holds it to write, as in libc; 0: none */
};
_Static_assert(offsetof(struct preload_rwlock, writer) == offsetof(pthread_rwlock_t, __data.__cur_writer), "moved");
_Static_assert(offsetof(struct preload_rwlock, writer) + sizeof(int) <= offsetof(pthread_rwlock_t, __data.__shared),
	       "no room");
_Static_assert(_Alignof(struct preload_rwlock) <= _Alignof(pthread_rwlock_t), "not aligned");

static inline struct preload_mutex *preload_mutex(pthread_mutex_t *mutex)
{
	return (struct preload_mutex *)(void *)mutex;
}

static inline struct preload_condition *preload_condition(pthread_cond_t *condition)
{
	return (struct preload_condition *)(void *)condition;
}

static inline struct preload_rwlock *preload_rwlock(pthread_rwlock_t *lock)
{
	return (struct preload_rwlock *)(void *)lock;
}

static inline _Bool preload_mutex_is_ours(const struct preload_mutex *mutex)
{
	return (mutex->kind & ~(PRELOAD_MUTEX_TYPE | PRELOAD_MUTEX_ELISION)) == 0;
}

/* Ours, and a default or a normal one: without an owner. */
static inline _Bool preload_mutex_is_plain(const struct preload_mutex *mutex)
{
	return (mutex->kind & ~PRELOAD_MUTEX_ELISION) == PTHREAD_MUTEX_TIMED_NP;
}

static inline _Bool preload_condition_is_ours(const pthread_cond_t *condition)
{
	return !(condition->__data.__wrefs & PRELOAD_CONDITION_SHARED);
}

static inline _Bool preload_rwlock_is_ours(const pthread_rwlock_t *lock)
{
	return lock->__data.__shared == 0;
}

/* As pthread_mutex_lock() and pthread_mutex_unlock(), for callers in this library. */
PRELOAD_HIDDEN int preload_mutex_lock(pthread_mutex_t *mutex, const void *site);
PRELOAD_HIDDEN int preload_mutex_unlock(pthread_mutex_t *mutex);

#endif
