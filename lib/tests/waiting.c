/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* waiting.c - how waiters wait, and in which order they get the lock. */
#include <sched.h>
#include <signal.h>

#include "observers.h"
#include "waiters.h"

#define QUEUED 5

/* One waiter, watched until it sleeps or has run for long. */
const char *observe_waits(void)
{
	union any *lock = new_lock();
	struct waiter waiter = {0};
	bool slept;

	kind->lock(lock);
	waiter_start(&waiter, kind, lock);
	slept = waiter_settle(&waiter, WAITED_LONG_NS);
	kind->unlock(lock);
	waiter_join(&waiter);
	free(lock);
	return slept ? "sleeps" : "spins";
}

/* Waiters come one after another, and all wait for long: in which order they get the lock. */
static bool in_order(void)
{
	union any *lock = new_lock();
	struct waiter waiters[QUEUED] = {0};
	atomic_int order = 0;
	bool same = 1;

	kind->lock(lock);
	for (int i = 0; i < QUEUED; i++) {
		waiters[i].order = &order;
		waiter_start(&waiters[i], kind, lock);
		waiter_settle(&waiters[i], WAITING_NS);
	}
	for (int i = 0; i < QUEUED; i++)
		waiter_settle(&waiters[i], WAITED_LONG_NS / QUEUED);
	kind->unlock(lock);
	for (int i = 0; i < QUEUED; i++) {
		waiter_join(&waiters[i]);
		same &= waiters[i].place == i;
	}
	free(lock);
	return same;
}

/* Where order is not promised, chance would have to keep it three times. */
const char *observe_order(void)
{
	for (int round = 0; round < 3; round++) {
		if (!in_order())
			return "out of order";
	}
	return "in order";
}

/*
 * The holder unlocks and locks again, again and again, while one waits: whether it got the lock before the waiter did. All
 * but a lock without order let the waiter in at last; that one may starve it, and is not asked to.
 */
const char *observe_newcomers(void)
{
	long passes = 0;

	for (int round = 0; round < 3; round++) {
		union any *lock = new_lock();
		struct waiter waiter = {0};
		long long end;

		kind->lock(lock);
		waiter_start(&waiter, kind, lock);
		waiter_settle(&waiter, WAITED_LONG_NS);
		/* A lock without order may starve the waiter. */
		end = now_ns(CLOCK_MONOTONIC) + (strcmp(kind->name, "test_and_test_and_set") ? 2000 : 20) * MS;
		for (;;) {
			kind->unlock(lock);
			kind->lock(lock);
			if (atomic_load(&waiter.is_in))
				break;
			passes++;
			if (now_ns(CLOCK_MONOTONIC) > end) {
				if (strcmp(kind->name, "test_and_test_and_set"))
					return "starve it";
				break;
			}
		}
		kind->unlock(lock);
		waiter_join(&waiter);
		free(lock);
	}
	return passes ? "pass it" : "never pass it";
}

/*
 * The most that a waiter sleeps before it gets the lock, while the holder unlocks and takes it again at once, each time that
 * the waiter sleeps. Chance may let the waiter in earlier.
 */
const char *observe_sleeps(void)
{
	static char text[32];
	long most = 0;

	for (int round = 0; round < 4; round++) {
		union any *lock = new_lock();
		struct waiter waiter = {0};
		long long end = now_ns(CLOCK_MONOTONIC) + 2000 * MS;

		kind->lock(lock);
		waiter_start(&waiter, kind, lock);
		waiter_settle(&waiter, WAITED_LONG_NS);
		while (!atomic_load(&waiter.is_in) && now_ns(CLOCK_MONOTONIC) < end) {
			kind->unlock(lock);
			kind->lock(lock);
			do {
				sched_yield();
			} while (!atomic_load(&waiter.is_in) && !sleeps(&waiter));
		}
		kind->unlock(lock);
		waiter_join(&waiter);
		if (waiter.slept > most)
			most = waiter.slept;
		free(lock);
	}
	snprintf(text, sizeof(text), "%ld", most);
	return text;
}

/* A signal handler in which a waiter stays as if it had been preempted. */
static atomic_int held_up, release;

static void hold_up(int signal)
{
	(void)signal;
	atomic_store(&held_up, 1);
	while (!atomic_load(&release))
		pause_ns(MS / 2);
}

/* The first waiter does not run while the lock becomes free: whether the second one gets it meanwhile. */
const char *observe_stalled(void)
{
	union any *lock = new_lock();
	struct waiter first = {0}, second = {0};
	bool passed;

	signal(SIGUSR1, hold_up);
	kind->lock(lock);
	waiter_start(&first, kind, lock);
	waiter_settle(&first, WAITED_LONG_NS);
	pthread_kill(first.thread, SIGUSR1);
	while (!atomic_load(&held_up))
		pause_ns(MS / 2);
	waiter_start(&second, kind, lock);
	waiter_settle(&second, WAITING_NS);
	kind->unlock(lock);
	passed = waiter_comes_in(&second, 300 * MS);
	atomic_store(&release, 1);
	waiter_join(&first);
	waiter_join(&second);
	free(lock);
	return passed ? "is passed" : "stops those behind it";
}
