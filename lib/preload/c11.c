/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * c11.c - mtx_t and cnd_t of C11. In libc they are a pthread_mutex_t and a pthread_cond_t, on which libc's functions call
 * libc's own, not those above: so all of them are here.
 */
#include <errno.h>
#include <threads.h>

#include "object.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "an mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "a cnd_t is a pthread_cond_t");

static pthread_mutex_t *mutex_of(mtx_t *mutex)
{
	return (pthread_mutex_t *)(void *)mutex;
}

static pthread_cond_t *condition_of(cnd_t *condition)
{
	return (pthread_cond_t *)(void *)condition;
}

static int result_of(int error)
{
	switch (error) {
	case 0:
		return thrd_success;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	case ENOMEM:
		return thrd_nomem;
	default:
		return thrd_error;
	}
}

PRELOAD_API int mtx_init(mtx_t *mutex, int type)
{
	pthread_mutexattr_t attributes;
	int error;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
	error = pthread_mutex_init(mutex_of(mutex), &attributes);
	pthread_mutexattr_destroy(&attributes);
	return result_of(error);
}

PRELOAD_API void mtx_destroy(mtx_t *mutex)
{
	pthread_mutex_destroy(mutex_of(mutex));
}

PRELOAD_API int mtx_lock(mtx_t *mutex)
{
	return result_of(preload_mutex_lock(mutex_of(mutex), __builtin_return_address(0)));
}

PRELOAD_API int mtx_trylock(mtx_t *mutex)
{
	return result_of(pthread_mutex_trylock(mutex_of(mutex)));
}

PRELOAD_API int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time)
{
	return result_of(pthread_mutex_timedlock(mutex_of(mutex), time));
}

PRELOAD_API int mtx_unlock(mtx_t *mutex)
{
	return result_of(preload_mutex_unlock(mutex_of(mutex)));
}

PRELOAD_API int cnd_init(cnd_t *condition)
{
	return result_of(pthread_cond_init(condition_of(condition), 0));
}

PRELOAD_API void cnd_destroy(cnd_t *condition)
{
	pthread_cond_destroy(condition_of(condition));
}

PRELOAD_API int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
	return result_of(pthread_cond_wait(condition_of(condition), mutex_of(mutex)));
}

PRELOAD_API int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict time)
{
	return result_of(pthread_cond_timedwait(condition_of(condition), mutex_of(mutex), time));
}

PRELOAD_API int cnd_signal(cnd_t *condition)
{
	return result_of(pthread_cond_signal(condition_of(condition)));
}

PRELOAD_API int cnd_broadcast(cnd_t *condition)
{
	return result_of(pthread_cond_broadcast(condition_of(condition)));
}
