/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* process.c - numbers of threads and processes, and the check that libc's objects are as this library was compiled for. */
#include <string.h>

#include "object.h"

_Thread_local struct preload_thread preload_self __attribute__((tls_model("initial-exec")));
unspin_u32 process_generation;

void preload_fail(const char *message)
{
	static const char name[] = "libunspin-preload: ", end[] = "\n";

	if (write(STDERR_FILENO, name, sizeof(name) - 1) < 0 || write(STDERR_FILENO, message, strlen(message)) < 0 ||
	    write(STDERR_FILENO, end, sizeof(end) - 1) < 0)
		_exit(127);
	_exit(127);
}

int preload_tid_take(void)
{
	preload_self.tid = (int)syscall(SYS_gettid);
	return preload_self.tid;
}

static void in_the_child(void)
{
	process_generation++;
	preload_self.tid = 0;
	if (preload_report)
		__atomic_fetch_add(&preload_report->processes, 1, __ATOMIC_RELAXED);
}

/* What init functions leave is where object.h expects it. */
static void check_mutexes(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	if (preload_libc()->pthread_mutex_init(&mutex, &attributes) ||
	    preload_mutex(&mutex)->kind != PTHREAD_MUTEX_RECURSIVE_NP)
		preload_fail("a pthread_mutex_t of this libc is laid out in another way: build libunspin here");
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (preload_libc()->pthread_mutex_init(&mutex, &attributes) || preload_mutex_is_ours(preload_mutex(&mutex)))
		preload_fail("a shared pthread_mutex_t of this libc is not recognised: build libunspin here");
	pthread_mutexattr_destroy(&attributes);
}

static void check_conditions(void)
{
	pthread_condattr_t attributes;
	pthread_cond_t shared, monotonic;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (preload_libc()->pthread_cond_init(&monotonic, &attributes) || !preload_condition_is_ours(&monotonic) ||
	    !(monotonic.__data.__wrefs & PRELOAD_CONDITION_MONOTONIC))
		preload_fail("a pthread_cond_t of this libc is laid out in another way: build libunspin here");
	pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (preload_libc()->pthread_cond_init(&shared, &attributes) || preload_condition_is_ours(&shared))
		preload_fail("a shared pthread_cond_t of this libc is not recognised: build libunspin here");
	pthread_condattr_destroy(&attributes);
}

static void check_rwlocks(void)
{
	pthread_rwlockattr_t attributes;
	pthread_rwlock_t lock;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	if (preload_libc()->pthread_rwlock_init(&lock, &attributes) || !preload_rwlock_is_ours(&lock) ||
	    lock.__data.__flags != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
		preload_fail("a pthread_rwlock_t of this libc is laid out in another way: build libunspin here");
	pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (preload_libc()->pthread_rwlock_init(&lock, &attributes) || preload_rwlock_is_ours(&lock))
		preload_fail("a shared pthread_rwlock_t of this libc is not recognised: build libunspin here");
	pthread_rwlockattr_destroy(&attributes);
}

static void check_spinlocks(void)
{
	pthread_spinlock_t of_libc, ours;

	preload_libc()->pthread_spin_init(&of_libc, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&ours, PTHREAD_PROCESS_PRIVATE);
	if (of_libc != ours)
		preload_fail("a pthread_spinlock_t of this libc is free with another value: build libunspin here");
}

/*
 * Before any thread but the first; linked with -z initfirst, so before the constructors of other libraries, libc's included:
 * getenv() finds nothing yet, but glibc passes the environment on (elf/dl-init.c).
 */
static __attribute__((constructor)) void begin(int count, char **arguments, char **environment)
{
	(void)count;
	(void)arguments;
	preload_libc();
	check_mutexes();
	check_conditions();
	check_rwlocks();
	check_spinlocks();
	if (pthread_atfork(0, 0, in_the_child))
		preload_fail("no memory for a handler of fork");
	preload_report_open(environment);
}
