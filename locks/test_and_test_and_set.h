/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * test_and_test_and_set.h - as test_and_set.h, but waiters only read until the word looks free.
 *
 * Source: Rudolph and Segall (1984); Linux before 2.6.25. Fairness: none, a waiter may starve. Limits: any number of
 * vCPUs; after a release all waiters try to write the cache line at once.
 */
#ifndef UNSPIN_LOCKS_TEST_AND_TEST_AND_SET_H
#define UNSPIN_LOCKS_TEST_AND_TEST_AND_SET_H

#include "platform/contract.h"

struct test_and_test_and_set_lock {
	struct platform_word taken; /* 0 free, 1 taken */
};

/* Initialises the lock, before it is shared. */
static inline void test_and_test_and_set_init(struct test_and_test_and_set_lock *lock)
{
	platform_init(&lock->taken, 0);
}

/* Returns whether the lock was taken. Writes the word only if it looked free. */
static inline _Bool test_and_test_and_set_trylock(struct test_and_test_and_set_lock *lock)
{
	/* The read may be relaxed: the exchange takes the lock, and its acquire pairs with the release in unlock. */
	return platform_load_relaxed(&lock->taken) == 0 && platform_exchange_acquire(&lock->taken, 1) == 0;
}

/* Returns when the caller holds the lock. The caller must not hold it already. */
static inline void test_and_test_and_set_lock(struct test_and_test_and_set_lock *lock)
{
	while (platform_exchange_acquire(&lock->taken, 1) != 0)
		platform_wait_while(&lock->taken, 1, PLATFORM_FOREVER);
}

/* Whether the lock is held. May be out of date when it returns, and implies no memory order. */
static inline _Bool test_and_test_and_set_is_locked(const struct test_and_test_and_set_lock *lock)
{
	return platform_load_relaxed(&lock->taken) != 0;
}

/*
 * For the holder only; does nothing to a lock that is not held. Release: the critical section is visible to the next
 * holder.
 */
static inline void test_and_test_and_set_unlock(struct test_and_test_and_set_lock *lock)
{
	platform_store_release(&lock->taken, 0);
}

#endif
