/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * mutex_eschdspin.h - mutex.h whose queued waiters wait by eSchdSpin (waiting_strategy.h; Kashyap et al. 2018,
 * section 4; ruling 24). Fairness and limits: as mutex.h.
 */
#ifndef UNSPIN_LOCKS_MUTEX_ESCHDSPIN_H
#define UNSPIN_LOCKS_MUTEX_ESCHDSPIN_H

#include "mutex.h"

struct mutex_eschdspin_lock {
	struct mutex_lock mutex;
};

/* Initialises the lock, before it is shared. */
static inline void mutex_eschdspin_init(struct mutex_eschdspin_lock *lock)
{
	mutex_init_strategy(&lock->mutex, WAITING_ESCHDSPIN);
}

/* The functions of mutex.h. */
static inline void mutex_eschdspin_lock(struct mutex_eschdspin_lock *lock)
{
	mutex_lock(&lock->mutex);
}

static inline _Bool mutex_eschdspin_trylock(struct mutex_eschdspin_lock *lock)
{
	return mutex_trylock(&lock->mutex);
}

static inline _Bool mutex_eschdspin_is_locked(const struct mutex_eschdspin_lock *lock)
{
	return mutex_is_locked(&lock->mutex);
}

static inline void mutex_eschdspin_unlock(struct mutex_eschdspin_lock *lock)
{
	mutex_unlock(&lock->mutex);
}

#endif
