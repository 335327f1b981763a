/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * waiters.h - threads that wait for a lock, seen from outside: whether they have begun to wait, sleep, or got it.
 */
#ifndef UNSPIN_LIB_TESTS_WAITERS_H
#define UNSPIN_LIB_TESTS_WAITERS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kind.h"

/* After so much CPU time in lock() a thread waits: what comes before is microseconds. */
#define WAITING_NS 3000000
/* After so much every lock that can sleep does, and every time-out of a ticket has passed. */
#define WAITED_LONG_NS 20000000
#define MS 1000000l
/* No error has this number. */
#define ERRNO_BEFORE 4711

static inline _Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static inline void pause_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	nanosleep(&time, 0);
}

static inline long long now_ns(clockid_t clock)
{
	struct timespec time;

	if (clock_gettime(clock, &time))
		fail("clock_gettime");
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* One thread that takes the lock once. */
struct waiter {
	const struct kind *kind;
	union any *lock;
	atomic_int *order; /* 0: none. Where to take its place from, inside the lock */
	pthread_t thread;
	atomic_int tid;	  /* not 0: it is about to call lock() */
	atomic_int is_in; /* it has been inside */
	atomic_int stay;  /* 1: it ends without unlocking */
	int place;
	long slept;	 /* so many times, in lock() */
	int errno_after; /* that was ERRNO_BEFORE before */
};

/* How often the calling thread has gone to sleep. */
static inline long times_slept(void)
{
	struct rusage used;

	if (getrusage(RUSAGE_THREAD, &used))
		fail("getrusage");
	return used.ru_nvcsw;
}

static inline void *wait_once(void *argument)
{
	struct waiter *waiter = argument;

	atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
	waiter->slept = -times_slept();
	errno = ERRNO_BEFORE;
	waiter->kind->lock(waiter->lock);
	waiter->errno_after = errno;
	waiter->slept += times_slept();
	waiter->place = waiter->order ? atomic_fetch_add(waiter->order, 1) : 0;
	atomic_store(&waiter->is_in, 1);
	if (!atomic_load(&waiter->stay))
		waiter->kind->unlock(waiter->lock);
	return 0;
}

static inline void waiter_start(struct waiter *waiter, const struct kind *kind, union any *lock)
{
	waiter->kind = kind;
	waiter->lock = lock;
	if (pthread_create(&waiter->thread, 0, wait_once, waiter))
		fail("pthread_create");
	while (!atomic_load(&waiter->tid))
		pause_ns(MS / 10);
}

/* A line of a file of a thread in /proc, from `key` on; "" if there is none. `line`: 512 bytes. */
static inline const char *thread_line(int tid, const char *file, const char *key, char *line)
{
	char path[64];
	FILE *stream;
	const char *found = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, file);
	stream = fopen(path, "r");
	if (!stream)
		return "";
	while (fgets(line, 512, stream)) {
		const char *at = strstr(line, key);

		if (at) {
			found = at + strlen(key);
			break;
		}
	}
	fclose(stream);
	return found;
}

static inline bool sleeps(const struct waiter *waiter)
{
	char line[512];

	return thread_line(waiter->tid, "stat", ") ", line)[0] == 'S';
}

/* Waits until the waiter sleeps (returns true), or has run for so long. */
static inline bool waiter_settle(const struct waiter *waiter, long long cpu_ns)
{
	clockid_t clock;

	if (pthread_getcpuclockid(waiter->thread, &clock))
		fail("pthread_getcpuclockid");
	while (now_ns(clock) < cpu_ns) {
		if (sleeps(waiter)) {
			pause_ns(2 * MS);
			if (sleeps(waiter))
				return 1;
		}
		pause_ns(MS / 2);
	}
	return 0;
}

/* Waits until the waiter has been inside, for `limit_ns` at most. */
static inline bool waiter_comes_in(struct waiter *waiter, long long limit_ns)
{
	long long end = now_ns(CLOCK_MONOTONIC) + limit_ns;

	while (!atomic_load(&waiter->is_in)) {
		if (now_ns(CLOCK_MONOTONIC) > end)
			return 0;
		pause_ns(MS / 2);
	}
	return 1;
}

static inline void waiter_join(struct waiter *waiter)
{
	pthread_join(waiter->thread, 0);
}

#endif
