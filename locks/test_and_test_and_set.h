/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * test_and_test_and_set.h - as test_and_set.h, but waiters only read until the word looks free.
 *
 * Source: Rudolph and Segall (1984); Linux before 2.6.25. Fairness: none, a waiter may starve. Limits: any number of
 * vCPUs; a release sends all waiters to the line at once.
 */
#ifndef UNSPIN_LOCKS_TEST_AND_TEST_AND_SET_H
#define UNSPIN_LOCKS_TEST_AND_TEST_AND_SET_H

#include "platform/contract.h"

struct test_and_test_and_set_lock {
	struct platform_word taken; /* 0 free, 1 taken */
};

/* Before the lock is shared. */
static inline void test_and_test_and_set_init(struct test_and_test_and_set_lock *lock)
{
	platform_init(&lock->taken, 0);
}

/* Returns whether the lock was taken. It writes only a lock that looked free. */
static inline _Bool test_and_test_and_set_trylock(struct test_and_test_and_set_lock *lock)
{
	/* The read may be relaxed: only the exchange takes, and its acquire pairs with the release in unlock. */
	return platform_load_relaxed(&lock->taken) == 0 && platform_exchange_acquire(&lock->taken, 1) == 0;
}

/* Returns when the caller holds the lock. It must not hold it already. */
static inline void test_and_test_and_set_lock(struct test_and_test_and_set_lock *lock)
{
	while (platform_exchange_acquire(&lock->taken, 1) != 0)
		platform_wait_while(&lock->taken, 1, PLATFORM_FOREVER);
}

/* A glance: it may be out of date when it returns, and orders nothing. */
static inline _Bool test_and_test_and_set_is_locked(const struct test_and_test_and_set_lock *lock)
{
	return platform_load_relaxed(&lock->taken) != 0;
}

/* By the holder only; a lock that is not held stays as it is. Release: the next holder sees the critical section. */
static inline void test_and_test_and_set_unlock(struct test_and_test_and_set_lock *lock)
{
	platform_store_release(&lock->taken, 0);
}

#endif
