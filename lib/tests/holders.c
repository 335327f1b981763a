/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* holders.c - what becomes of a lock whose holder locks it again, does not unlock it itself, dies, or has a low priority. */
#include <sched.h>
#include <signal.h>

#include "observers.h"
#include "waiters.h"

static int lock_twice(union any *lock)
{
	/* What the library says before it ends the program is for nobody here, nor is a core. */
	close(STDERR_FILENO);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	kind->lock(lock);
	if (kind->trylock(lock))
		return 1;
	kind->lock(lock);
	return 0;
}

const char *observe_recursion(void)
{
	/* One that ends is waited for; of the others it is enough to see that they wait. */
	switch (in_child(lock_twice, new_lock(), strcmp(kind->name, "linux_mutex") ? 100 * MS : 5000 * MS)) {
	case -1:
		return "waits";
	case 128 + SIGABRT:
		return "ends the program";
	case 1:
		return "trylock takes it again";
	default:
		return "takes it again";
	}
}

static void *unlock_it(void *lock)
{
	kind->unlock(lock);
	return 0;
}

static int unlock_elsewhere(union any *lock)
{
	pthread_t thread;

	kind->lock(lock);
	if (pthread_create(&thread, 0, unlock_it, lock))
		return 2;
	pthread_join(thread, 0);
	return !kind->trylock(lock);
}

const char *observe_others_unlock(void)
{
	switch (in_child(unlock_elsewhere, new_lock(), 2000 * MS)) {
	case 0:
		return "yes";
	case 1:
		return "no";
	default:
		return "breaks the lock";
	}
}

/* After a thread has died with the lock, a new one, which may get its number, tries, and then waits. */
static int wait_for_the_dead(union any *lock)
{
	struct waiter dead = {.stay = 1}, heir = {0};

	waiter_start(&dead, kind, lock);
	waiter_join(&dead);
	if (kind->trylock(lock))
		return 1;
	waiter_start(&heir, kind, lock);
	return waiter_comes_in(&heir, 100 * MS) ? 1 : 0;
}

const char *observe_dead_holder(void)
{
	return in_child(wait_for_the_dead, new_lock(), 5000 * MS) == 0 ? "stays held" : "is taken";
}

/* The calling thread's priority in the kernel's words: 20 and nice value, or -1 - priority of real time. */
static long priority(void)
{
	char line[512];
	const char *field = thread_line((int)syscall(SYS_gettid), "stat", ") ", line);

	/* Field 18, of which the third is the first here. */
	for (int i = 3; i < 18; i++)
		field = strchr(field, ' ') + 1;
	return strtol(field, 0, 10);
}

static void pin(pthread_t thread, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (pthread_setaffinity_np(thread, sizeof(one), &one))
		fail("pthread_setaffinity_np");
}

static void *wait_at_pthreads(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return 0;
}

/* The holder's priority while a thread of real-time priority waits. */
static long with_a_waiter(pthread_t thread)
{
	struct sched_param ten = {10};
	long seen;

	pin(thread, 1);
	if (pthread_setschedparam(thread, SCHED_FIFO, &ten))
		return -1000;
	pause_ns(20 * MS);
	seen = priority();
	return seen;
}

/* A waiter of a mutex of glibc's that inherits must be seen to lend its priority: else nothing is known of the lock. */
static bool glibcs_inherits(long own)
{
	pthread_mutexattr_t inherits;
	pthread_mutex_t mutex;
	pthread_t thread;
	long seen;
	struct sched_param ten = {10};

	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &inherits);
	pthread_mutex_lock(&mutex);
	if (pthread_create(&thread, 0, wait_at_pthreads, &mutex))
		fail("pthread_create");
	pause_ns(20 * MS);
	if (pthread_setschedparam(thread, SCHED_FIFO, &ten))
		seen = own;
	else
		seen = priority();
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, 0);
	return seen != own;
}

const char *observe_inheritance(void)
{
	union any *lock = new_lock();
	struct waiter waiter = {0};
	long own = priority(), seen;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || !glibcs_inherits(own))
		return "not known here";
	/* The waiter may spin: it gets a CPU of its own. */
	pin(pthread_self(), 0);
	kind->lock(lock);
	waiter_start(&waiter, kind, lock);
	seen = with_a_waiter(waiter.thread);
	kind->unlock(lock);
	waiter_join(&waiter);
	free(lock);
	return seen == own ? "none" : "the holder's priority changes";
}
