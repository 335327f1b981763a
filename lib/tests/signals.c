/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* signals.c - threads that are interrupted while they take, wait for or hold locks. */
#include <signal.h>

#include "observers.h"
#include "waiters.h"

#define THREADS 3
#define ROUNDS 3000
#define SIGNALS 300

static union any *outside, *inside;
static volatile long counted_outside, counted_inside;
static atomic_int running, handled, changed_errno, takes_in_handler, refused_wrongly;
static _Thread_local volatile bool holds;

static void handle(int signal)
{
	(void)signal;
	atomic_fetch_add(&handled, 1);
	/* Who is interrupted with the lock must not get it a second time. */
	if (holds && kind->trylock(outside))
		atomic_fetch_add(&refused_wrongly, 1);
	if (!atomic_load(&takes_in_handler))
		return;
	kind->lock(inside);
	counted_inside = counted_inside + 1;
	kind->unlock(inside);
}

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		errno = ERRNO_BEFORE;
		kind->lock(outside);
		holds = 1;
		counted_outside = counted_outside + 1;
		holds = 0;
		kind->unlock(outside);
		if (errno != ERRNO_BEFORE)
			atomic_fetch_add(&changed_errno, 1);
	}
	atomic_fetch_sub(&running, 1);
	/* It may still be signalled. */
	while (atomic_load(&running) >= 0)
		pause_ns(MS);
	return 0;
}

/* Threads count, and are interrupted all the time. Returns whether nothing was lost. */
static bool interrupted(bool in_handlers)
{
	struct sigaction action = {.sa_handler = handle};
	pthread_t threads[THREADS];

	outside = new_lock();
	inside = new_lock();
	counted_outside = counted_inside = 0;
	atomic_store(&handled, 0);
	atomic_store(&running, THREADS);
	atomic_store(&takes_in_handler, in_handlers);
	sigfillset(&action.sa_mask);
	sigaction(SIGUSR2, &action, 0);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], 0, work, 0))
			fail("pthread_create");
	}
	for (int i = 0; i < SIGNALS || atomic_load(&running) > 0; i++) {
		pthread_kill(threads[i % THREADS], SIGUSR2);
		pause_ns(MS / 50);
	}
	atomic_store(&running, -1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	if (atomic_load(&handled) < SIGNALS / 10)
		fail("hardly a signal was handled");
	return counted_outside == THREADS * ROUNDS && !atomic_load(&changed_errno) && !atomic_load(&refused_wrongly) &&
	       counted_inside == (in_handlers ? atomic_load(&handled) : 0);
}

/* A thread that waits, asleep if the lock has that, is interrupted there. Returns whether it has noticed nothing. */
static bool interrupted_in_its_wait(void)
{
	union any *lock = new_lock();
	struct waiter waiter = {0};

	outside = lock;
	kind->lock(lock);
	waiter_start(&waiter, kind, lock);
	waiter_settle(&waiter, WAITED_LONG_NS);
	for (int i = 0; i < 10; i++) {
		pthread_kill(waiter.thread, SIGUSR2);
		pause_ns(MS);
	}
	if (atomic_load(&waiter.is_in))
		return 0;
	kind->unlock(lock);
	waiter_join(&waiter);
	return waiter.errno_after == ERRNO_BEFORE;
}

const char *observe_signals(void)
{
	return interrupted(0) && interrupted_in_its_wait() ? "change nothing" : "are seen";
}

const char *observe_handlers(void)
{
	return interrupted(1) ? "yes" : "no";
}
