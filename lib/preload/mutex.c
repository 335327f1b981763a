/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mutex.c - pthread_mutex_t: locks/blocking/adaptive_mutex.h, with an owner in recursive and error-checking ones. Results are libc's
 * (POSIX.1-2024, pthread_mutex_lock; nptl/pthread_mutex_lock.c and pthread_mutex_unlock.c, glibc 2.36).
 */
#include <errno.h>

#include "object.h"

static int wait_for(struct preload_mutex *mutex, const struct process_deadline *deadline, const void *site)
{
	struct preload_thread before = preload_self;
	_Bool held = adaptive_mutex_lock_until(&mutex->lock, deadline);

	if (preload_report)
		preload_count_wait((enum unspin_preload_kind)(mutex->kind & PRELOAD_MUTEX_TYPE), mutex, site, before);
	return held ? 0 : ETIMEDOUT;
}

static inline int owner_of(const struct preload_mutex *mutex)
{
	return __atomic_load_n(&mutex->owner, __ATOMIC_RELAXED);
}

static void set_owner(struct preload_mutex *mutex, int owner)
{
	__atomic_store_n(&mutex->owner, owner, __ATOMIC_RELAXED);
}

/* Of the types that need to know their owner. */
static inline _Bool is_owned(const struct preload_mutex *mutex)
{
	int type = mutex->kind & PRELOAD_MUTEX_TYPE;

	return type == PTHREAD_MUTEX_RECURSIVE_NP || type == PTHREAD_MUTEX_ERRORCHECK_NP;
}

/* The caller holds a mutex of these types already: the result of a further lock, or of a trylock. */
static int lock_again(struct preload_mutex *mutex, int error)
{
	if ((mutex->kind & PRELOAD_MUTEX_TYPE) != PTHREAD_MUTEX_RECURSIVE_NP)
		return error;
	if (mutex->depth == ~0u)
		return EAGAIN;
	mutex->depth++;
	return 0;
}

static void own(struct preload_mutex *mutex)
{
	set_owner(mutex, preload_tid());
	mutex->depth = 1;
}

static __attribute__((noinline)) int lock_owned(struct preload_mutex *mutex, const struct process_deadline *deadline,
						const void *site)
{
	int error;

	if (owner_of(mutex) == preload_tid())
		return lock_again(mutex, EDEADLK);
	error = adaptive_mutex_trylock(&mutex->lock) ? 0 : wait_for(mutex, deadline, site);
	if (!error)
		own(mutex);
	return error;
}

/* The mutex is not a plain one that is free. */
static __attribute__((noinline)) int lock_other(pthread_mutex_t *of_libc, const void *site)
{
	struct preload_mutex *mutex = preload_mutex(of_libc);

	if (!preload_mutex_is_ours(mutex))
		return preload_libc()->pthread_mutex_lock(of_libc);
	if (is_owned(mutex))
		return lock_owned(mutex, 0, site);
	return adaptive_mutex_trylock(&mutex->lock) ? 0 : wait_for(mutex, 0, site);
}

static inline int lock(pthread_mutex_t *mutex, const void *site)
{
	if (PRELOAD_LIKELY(preload_mutex_is_plain(preload_mutex(mutex)) &&
			   adaptive_mutex_take(&preload_mutex(mutex)->lock, 0)))
		return 0;
	return lock_other(mutex, site);
}

int preload_mutex_lock(pthread_mutex_t *mutex, const void *site)
{
	return lock(mutex, site);
}

PRELOAD_API int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return lock(mutex, __builtin_return_address(0));
}

PRELOAD_API int pthread_mutex_trylock(pthread_mutex_t *of_libc)
{
	struct preload_mutex *mutex = preload_mutex(of_libc);

	if (PRELOAD_LIKELY(preload_mutex_is_plain(mutex)))
		return adaptive_mutex_trylock(&mutex->lock) ? 0 : EBUSY;
	if (!preload_mutex_is_ours(mutex))
		return preload_libc()->pthread_mutex_trylock(of_libc);
	if (is_owned(mutex) && owner_of(mutex) == preload_tid())
		return lock_again(mutex, EBUSY);
	if (!adaptive_mutex_trylock(&mutex->lock))
		return EBUSY;
	if (is_owned(mutex))
		own(mutex);
	return 0;
}

static int lock_until(pthread_mutex_t *of_libc, clockid_t clock, const struct timespec *time, const void *site)
{
	struct preload_mutex *mutex = preload_mutex(of_libc);
	struct process_deadline deadline;

	if (!preload_mutex_is_ours(mutex))
		return preload_libc()->pthread_mutex_clocklock(of_libc, clock, time);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	if (is_owned(mutex) && owner_of(mutex) == preload_tid())
		return lock_again(mutex, EDEADLK);
	if (adaptive_mutex_trylock(&mutex->lock)) {
		if (is_owned(mutex))
			own(mutex);
		return 0;
	}
	/* A time is looked at only if the call must wait. */
	if (!preload_is_time(time) || !preload_deadline(&deadline, clock, time))
		return EINVAL;
	return is_owned(mutex) ? lock_owned(mutex, &deadline, site) : wait_for(mutex, &deadline, site);
}

PRELOAD_API int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time)
{
	return lock_until(mutex, CLOCK_REALTIME, time, __builtin_return_address(0));
}

PRELOAD_API int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
	return lock_until(mutex, clock, time, __builtin_return_address(0));
}

static __attribute__((noinline)) int unlock_other(pthread_mutex_t *of_libc)
{
	struct preload_mutex *mutex = preload_mutex(of_libc);

	if (!preload_mutex_is_ours(mutex))
		return preload_libc()->pthread_mutex_unlock(of_libc);
	if (is_owned(mutex)) {
		if (owner_of(mutex) != preload_tid())
			return EPERM;
		if (--mutex->depth)
			return 0;
		set_owner(mutex, 0);
	}
	adaptive_mutex_unlock(&mutex->lock);
	return 0;
}

int preload_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!PRELOAD_LIKELY(preload_mutex_is_plain(preload_mutex(mutex))))
		return unlock_other(mutex);
	adaptive_mutex_unlock(&preload_mutex(mutex)->lock);
	return 0;
}

PRELOAD_API int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return preload_mutex_unlock(mutex);
}

/* libc's leaves zero bytes and the kind, or an error. */
PRELOAD_API int pthread_mutex_init(pthread_mutex_t *of_libc, const pthread_mutexattr_t *attributes)
{
	int error = preload_libc()->pthread_mutex_init(of_libc, attributes), kind = preload_mutex(of_libc)->kind;

	if (error || preload_mutex_is_ours(preload_mutex(of_libc)))
		return error;
	if (kind & PRELOAD_MUTEX_ROBUST)
		preload_count_passed(UNSPIN_PRELOAD_PASSED_ROBUST);
	else if (kind & PRELOAD_MUTEX_PRIORITY)
		preload_count_passed(UNSPIN_PRELOAD_PASSED_PRIORITY);
	else if (kind & PRELOAD_MUTEX_SHARED)
		preload_count_passed(UNSPIN_PRELOAD_PASSED_SHARED_MUTEX);
	return 0;
}

PRELOAD_API int pthread_mutex_destroy(pthread_mutex_t *of_libc)
{
	struct preload_mutex *mutex = preload_mutex(of_libc);

	if (!preload_mutex_is_ours(mutex))
		return preload_libc()->pthread_mutex_destroy(of_libc);
	if (platform_load_relaxed(&mutex->lock.holder) & ADAPTIVE_MUTEX_HELD)
		return EBUSY;
	mutex->kind = PRELOAD_MUTEX_DESTROYED;
	return 0;
}

/* Names that libc exports for old programs. */
PRELOAD_API int __pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return lock(mutex, __builtin_return_address(0));
}

PRELOAD_API int __pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return pthread_mutex_trylock(mutex);
}

PRELOAD_API int __pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return preload_mutex_unlock(mutex);
}

PRELOAD_API int __pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	return pthread_mutex_init(mutex, attributes);
}

PRELOAD_API int __pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	return pthread_mutex_destroy(mutex);
}
