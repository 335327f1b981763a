/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * race.c - for ThreadSanitizer: threads that come and go count under every lock, in plain memory; under linux_mutex more of
 * them than have a place to sleep. Usage: race [unlocked]; with an argument nobody locks, which must be reported.
 */
#include "table.h"
#include "waiters.h"

#define CROWD 72
#define FEW 2
#define ROUNDS 20

static const struct kind *kind;
static union any lock;
static long count;
static bool unlocked;

/* With more threads than CPUs an operation of the other locks may take a time slice. */
static int threads_of(const struct kind *one)
{
	return strcmp(one->name, "linux_mutex") ? FEW : CROWD;
}

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		if (kind->read_lock && i % 4 == 0) {
			kind->read_lock(&lock);
			if (count < 0)
				fail("negative");
			kind->read_unlock(&lock);
		}
		if (!unlocked)
			kind->lock(&lock);
		count++;
		if (!unlocked)
			kind->unlock(&lock);
	}
	return 0;
}

int main(int arguments, char **unused)
{
	(void)unused;
	unlocked = arguments > 1;
	for (size_t i = 0; i < KINDS; i++) {
		pthread_t threads[CROWD];
		int running = threads_of(&kinds[i]);

		kind = &kinds[i];
		kind->init(&lock);
		count = 0;
		for (int j = 0; j < running; j++) {
			if (pthread_create(&threads[j], 0, work, 0))
				fail("pthread_create");
		}
		for (int j = 0; j < running; j++)
			pthread_join(threads[j], 0);
		if (!unlocked && (count != (long)running * ROUNDS || kind->is_locked(&lock)))
			fail(kind->name);
	}
	puts("ok");
	return 0;
}
