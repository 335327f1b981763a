/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rwlock.c - pthread_rwlock_t: locks/blocking/adaptive_rwlock.h. Results are libc's (POSIX.1-2024, pthread_rwlock_rdlock;
 * nptl/pthread_rwlock_common.c, glibc 2.36): readers enter while writers wait, unless the kind is
 * PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.
 */
#include <errno.h>

#include "object.h"

static inline _Bool keeps_off(const pthread_rwlock_t *lock)
{
	return lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

static inline int writer_of(const struct preload_rwlock *lock)
{
	return __atomic_load_n(&lock->writer, __ATOMIC_RELAXED);
}

static inline void set_writer(struct preload_rwlock *lock, int writer)
{
	__atomic_store_n(&lock->writer, writer, __ATOMIC_RELAXED);
}

/* Waits for an entry, and counts the wait. */
static int wait_for(struct preload_rwlock *lock, const struct adaptive_rwlock_entry *entry, const void *site)
{
	struct preload_thread before = preload_self;
	_Bool is_in = adaptive_rwlock_wait(&lock->lock, entry);

	if (preload_report)
		preload_count_wait(UNSPIN_PRELOAD_RWLOCK, lock, site, before);
	return is_in ? 0 : ETIMEDOUT;
}

static _Bool is_full(const struct preload_rwlock *lock)
{
	unspin_u32 state = platform_load_relaxed(&lock->lock.state);

	return !(state & ADAPTIVE_RWLOCK_WRITER) && state >= ADAPTIVE_RWLOCK_READERS_MAX / 2;
}

/* `time`: 0: none. */
static inline int read_lock(pthread_rwlock_t *of_libc, clockid_t clock, const struct timespec *time, const void *site)
{
	struct preload_rwlock *lock = preload_rwlock(of_libc);
	struct adaptive_rwlock_entry entry = {.reads = 1, .keeps_off = keeps_off(of_libc)};
	struct process_deadline deadline;

	if (time && (!preload_is_time(time) || !preload_deadline(&deadline, clock, time)))
		return EINVAL;
	if (is_full(lock))
		return EAGAIN;
	if (PRELOAD_LIKELY(adaptive_rwlock_try_read(&lock->lock, entry.keeps_off)))
		return 0;
	if (writer_of(lock) == preload_tid())
		return EDEADLK;
	entry.deadline = time ? &deadline : 0;
	return wait_for(lock, &entry, site);
}

static inline int write_lock(pthread_rwlock_t *of_libc, clockid_t clock, const struct timespec *time, const void *site)
{
	struct preload_rwlock *lock = preload_rwlock(of_libc);
	struct adaptive_rwlock_entry entry = {0};
	struct process_deadline deadline;
	int error = 0;

	if (time && (!preload_is_time(time) || !preload_deadline(&deadline, clock, time)))
		return EINVAL;
	if (!PRELOAD_LIKELY(adaptive_rwlock_trylock(&lock->lock))) {
		if (writer_of(lock) == preload_tid())
			return EDEADLK;
		entry.deadline = time ? &deadline : 0;
		error = wait_for(lock, &entry, site);
	}
	if (!error)
		set_writer(lock, preload_tid());
	return error;
}

PRELOAD_API int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	if (!preload_rwlock_is_ours(lock))
		return preload_libc()->pthread_rwlock_rdlock(lock);
	return read_lock(lock, 0, 0, __builtin_return_address(0));
}

PRELOAD_API int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time)
{
	if (!preload_rwlock_is_ours(lock))
		return preload_libc()->pthread_rwlock_clockrdlock(lock, clock, time);
	return read_lock(lock, clock, time, __builtin_return_address(0));
}

PRELOAD_API int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *time)
{
	if (!preload_rwlock_is_ours(lock))
		return preload_libc()->pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, time);
	return read_lock(lock, CLOCK_REALTIME, time, __builtin_return_address(0));
}

PRELOAD_API int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	if (!preload_rwlock_is_ours(lock))
		return preload_libc()->pthread_rwlock_wrlock(lock);
	return write_lock(lock, 0, 0, __builtin_return_address(0));
}

PRELOAD_API int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time)
{
	if (!preload_rwlock_is_ours(lock))
		return preload_libc()->pthread_rwlock_clockwrlock(lock, clock, time);
	return write_lock(lock, clock, time, __builtin_return_address(0));
}

PRELOAD_API int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *time)
{
	if (!preload_rwlock_is_ours(lock))
		return preload_libc()->pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, time);
	return write_lock(lock, CLOCK_REALTIME, time, __builtin_return_address(0));
}

PRELOAD_API int pthread_rwlock_tryrdlock(pthread_rwlock_t *of_libc)
{
	struct preload_rwlock *lock = preload_rwlock(of_libc);

	if (!preload_rwlock_is_ours(of_libc))
		return preload_libc()->pthread_rwlock_tryrdlock(of_libc);
	if (is_full(lock))
		return EAGAIN;
	return adaptive_rwlock_try_read(&lock->lock, keeps_off(of_libc)) ? 0 : EBUSY;
}

PRELOAD_API int pthread_rwlock_trywrlock(pthread_rwlock_t *of_libc)
{
	struct preload_rwlock *lock = preload_rwlock(of_libc);

	if (!preload_rwlock_is_ours(of_libc))
		return preload_libc()->pthread_rwlock_trywrlock(of_libc);
	if (!adaptive_rwlock_trylock(&lock->lock))
		return EBUSY;
	set_writer(lock, preload_tid());
	return 0;
}

/* A writer's if one is inside: nobody else is then. Does nothing if nobody is. */
PRELOAD_API int pthread_rwlock_unlock(pthread_rwlock_t *of_libc)
{
	struct preload_rwlock *lock = preload_rwlock(of_libc);
	unspin_u32 state;

	if (!preload_rwlock_is_ours(of_libc))
		return preload_libc()->pthread_rwlock_unlock(of_libc);
	state = platform_load_relaxed(&lock->lock.state);
	if (state & ADAPTIVE_RWLOCK_WRITER) {
		set_writer(lock, 0);
		adaptive_rwlock_unlock(&lock->lock);
	} else if (state) {
		adaptive_rwlock_read_unlock(&lock->lock);
	}
	return 0;
}

PRELOAD_API int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes)
{
	int error = preload_libc()->pthread_rwlock_init(lock, attributes);

	if (!error && !preload_rwlock_is_ours(lock))
		preload_count_passed(UNSPIN_PRELOAD_PASSED_SHARED_RWLOCK);
	return error;
}

/* libc's does nothing, whatever the lock is. */
PRELOAD_API int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
	return preload_libc()->pthread_rwlock_destroy(lock);
}

/* Names that libc exports for old programs. */
PRELOAD_API int __pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	return pthread_rwlock_rdlock(lock);
}

PRELOAD_API int __pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	return pthread_rwlock_tryrdlock(lock);
}

PRELOAD_API int __pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	return pthread_rwlock_wrlock(lock);
}

PRELOAD_API int __pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	return pthread_rwlock_trywrlock(lock);
}

PRELOAD_API int __pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	return pthread_rwlock_unlock(lock);
}

PRELOAD_API int __pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes)
{
	return pthread_rwlock_init(lock, attributes);
}

PRELOAD_API int __pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
	return pthread_rwlock_destroy(lock);
}
