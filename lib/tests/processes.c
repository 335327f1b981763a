/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* processes.c - locks in a process that forks, and in memory that processes share. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "observers.h"
#include "waiters.h"

#define THREADS 3
#define ROUNDS 300
/* More threads than have a place to sleep (PLATFORM_WAITERS_MAX). */
#define CROWD 80

/* What several threads or processes count, without atomics. */
struct counted {
	union any lock;
	volatile long count;
};

static void *count(void *argument)
{
	struct counted *counted = argument;

	for (int i = 0; i < ROUNDS; i++) {
		kind->lock(&counted->lock);
		counted->count = counted->count + 1;
		kind->unlock(&counted->lock);
	}
	return 0;
}

static struct counted *new_counted(void)
{
	struct counted *counted = mmap(0, sizeof(*counted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (counted == MAP_FAILED)
		fail("mmap");
	kind->init(&counted->lock);
	return counted;
}

/* In a child: threads of its own use the lock, which is free or the caller's. */
static int goes_on(union any *lock)
{
	struct counted *counted = new_counted();
	pthread_t threads[THREADS];

	if (!kind->is_locked(lock))
		kind->lock(lock);
	kind->unlock(lock);
	kind->lock(lock);
	kind->unlock(lock);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, count, counted);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	return counted->count != THREADS * ROUNDS;
}

static int refused(union any *lock)
{
	return kind->trylock(lock);
}

/* A thread that waits at another lock while the process forks, so that more than one has a number. */
const char *observe_fork(void)
{
	union any *others = new_lock(), *lock = new_lock();
	struct waiter waiter = {0};
	const char *seen = "as it was";

	kind->lock(others);
	waiter_start(&waiter, kind, others);
	waiter_settle(&waiter, WAITING_NS);
	if (in_child(goes_on, lock, 10000 * MS) != 0)
		seen = "a free lock cannot be used in the child";
	kind->lock(lock);
	if (in_child(goes_on, lock, 10000 * MS) != 0)
		seen = "the child cannot unlock what the forking thread held";
	kind->unlock(lock);
	kind->unlock(others);
	waiter_join(&waiter);
	waiter = (struct waiter){.stay = 1};
	waiter_start(&waiter, kind, lock);
	waiter_join(&waiter);
	if (in_child(refused, lock, 10000 * MS) != 0)
		seen = "the child takes what another thread held";
	return seen;
}

/* Two processes count together. */
static int count_in_child(union any *lock)
{
	/* `lock` is its first member. */
	count((struct counted *)(void *)lock);
	return 0;
}

static int wait_in_child(union any *lock)
{
	/* A lock that takes the child for the holder says so before it ends it. */
	close(STDERR_FILENO);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	kind->lock(lock);
	return 0;
}

const char *observe_shared(void)
{
	struct counted *counted = new_counted();
	pid_t children[2];
	bool ended = 1;
	int status;

	/* Whoever sleeps must be woken by another process. */
	kind->lock(&counted->lock);
	fflush(stdout);
	children[0] = fork();
	if (children[0] == 0)
		_exit(wait_in_child(&counted->lock));
	pause_ns(60 * MS);
	kind->unlock(&counted->lock);
	for (int i = 0; i < 250 && (ended = waitpid(children[0], &status, WNOHANG) != 0) == 0; i++)
		pause_ns(2 * MS);
	if (!ended) {
		kill(children[0], SIGKILL);
		waitpid(children[0], &status, 0);
	}
	if (!ended || !WIFEXITED(status))
		return "no";
	kind->init(&counted->lock);
	children[1] = fork();
	if (children[1] == 0)
		_exit(count_in_child(&counted->lock));
	if (in_child(count_in_child, &counted->lock, 5000 * MS) != 0 || waitpid(children[1], &status, 0) < 0)
		return "no";
	return counted->count == 2 * ROUNDS ? "yes" : "no";
}

static atomic_int crowd_ready, crowd_may_go;

static void *be_there(void *lock)
{
	kind->lock(lock);
	kind->unlock(lock);
	atomic_fetch_add(&crowd_ready, 1);
	while (!atomic_load(&crowd_may_go))
		pause_ns(MS);
	return 0;
}

/* Places to sleep are those of threads that live: as many as there are have come and gone, or are another process's. */
static int still_sleeps(union any *lock)
{
	struct waiter waiter = {0};
	bool slept;

	kind->lock(lock);
	waiter_start(&waiter, kind, lock);
	slept = waiter_settle(&waiter, WAITED_LONG_NS);
	kind->unlock(lock);
	waiter_join(&waiter);
	return !slept;
}

/* Forks; the caller's number is above those of the crowd, so that the child's first threads get numbers of the crowd. */
static void *fork_above_the_crowd(void *lock)
{
	kind->lock(lock);
	kind->unlock(lock);
	return in_child(still_sleeps, lock, 5000 * MS) == 0 ? 0 : lock;
}

const char *observe_seats(void)
{
	union any *lock = new_lock();
	pthread_t crowd[CROWD], above;
	const char *seen = "given back";
	void *lost;

	for (int i = 0; i < CROWD; i++) {
		if (pthread_create(&crowd[i], 0, be_there, lock))
			fail("pthread_create");
	}
	while (atomic_load(&crowd_ready) < CROWD)
		pause_ns(MS);
	if (still_sleeps(lock) == 0)
		seen = "not needed";
	if (in_child(still_sleeps, lock, 5000 * MS) != 0)
		seen = "lost at fork";
	if (pthread_create(&above, 0, fork_above_the_crowd, lock) || pthread_join(above, &lost))
		fail("pthread_create");
	if (lost)
		seen = "lost at a fork by a thread with a higher number";
	atomic_store(&crowd_may_go, 1);
	for (int i = 0; i < CROWD; i++)
		pthread_join(crowd[i], 0);
	if (still_sleeps(lock) != 0)
		seen = "lost at a thread's end";
	return seen;
}
