/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * rwsem_eschdspin.h - rwsem.h whose queued waiters wait by eSchdSpin (waiting_strategy.h; Kashyap et al. 2018,
 * section 4; ruling 24). Fairness and limits: as rwsem.h.
 */
#ifndef UNSPIN_LOCKS_RWSEM_ESCHDSPIN_H
#define UNSPIN_LOCKS_RWSEM_ESCHDSPIN_H

#include "rwsem.h"

struct rwsem_eschdspin_lock {
	struct rwsem_lock rwsem;
};

/* Initialises the lock, before it is shared. */
static inline void rwsem_eschdspin_init(struct rwsem_eschdspin_lock *lock)
{
	rwsem_init_strategy(&lock->rwsem, WAITING_ESCHDSPIN);
}

/* The functions of rwsem.h. */
static inline void rwsem_eschdspin_lock(struct rwsem_eschdspin_lock *lock)
{
	rwsem_lock(&lock->rwsem);
}

static inline _Bool rwsem_eschdspin_trylock(struct rwsem_eschdspin_lock *lock)
{
	return rwsem_trylock(&lock->rwsem);
}

static inline _Bool rwsem_eschdspin_is_locked(const struct rwsem_eschdspin_lock *lock)
{
	return rwsem_is_locked(&lock->rwsem);
}

static inline void rwsem_eschdspin_unlock(struct rwsem_eschdspin_lock *lock)
{
	rwsem_unlock(&lock->rwsem);
}

static inline void rwsem_eschdspin_read_lock(struct rwsem_eschdspin_lock *lock)
{
	rwsem_read_lock(&lock->rwsem);
}

static inline _Bool rwsem_eschdspin_read_trylock(struct rwsem_eschdspin_lock *lock)
{
	return rwsem_read_trylock(&lock->rwsem);
}

static inline void rwsem_eschdspin_read_unlock(struct rwsem_eschdspin_lock *lock)
{
	rwsem_read_unlock(&lock->rwsem);
}

#endif
