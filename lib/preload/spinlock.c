/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spinlock.c - pthread_spinlock_t: test-and-test-and-set whose waiters let others run: at once where the holder was preempted
 * on their CPU, otherwise after a while.
 *
 * The word is understood by libc's own functions, in a process without this library that shares it: where it is free, as
 * libc has it, and held with any other value (on x86: of 0 or less). It says on which CPU the holder took it. It has no room
 * for who sleeps, and an unlock is a plain store as in libc, so a waiter sleeps for a time.
 */
#include <errno.h>
#include <sched.h>

#include "object.h"

#if defined(__x86_64__) || defined(__i386__)
#define FREE 1 /* sysdeps/x86_64/nptl/pthread_spin_unlock.S, glibc 2.36 */
#define HELD_BY(mark) (-(int)(mark))
#define HOLDER(word) ((unspin_u32)(-(word)))
#else
#define FREE 0 /* nptl/pthread_spin_unlock.c */
#define HELD_BY(mark) ((int)(mark) + 1)
#define HOLDER(word) ((unspin_u32)(word) - 1)
#endif

/* About the cost of a system call; then so many times sched_yield(), then sleeps that begin with the first of these. */
#define SPINS 256u
#define YIELDS 4u
#define SLEEP_FIRST_NS 20000l
#define SLEEP_LONGEST_NS 1000000l

static inline _Bool take(pthread_spinlock_t *lock)
{
	int expected = FREE;

	return __atomic_load_n(lock, __ATOMIC_RELAXED) == FREE &&
	       __atomic_compare_exchange_n(lock, &expected, HELD_BY(platform_mark()), 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Whether a thread holds it that may run. */
static _Bool is_worth_spinning(pthread_spinlock_t *lock)
{
	int word = __atomic_load_n(lock, __ATOMIC_RELAXED);

	return word == FREE || platform_mark_runs(HOLDER(word));
}

static void let_others_run(unsigned int times)
{
	struct timespec time = {0, SLEEP_FIRST_NS};

	if (times < YIELDS) {
		platform_help();
		return;
	}
	preload_self.blocks++;
	for (times -= YIELDS; times && time.tv_nsec < SLEEP_LONGEST_NS; times--)
		time.tv_nsec *= 2;
	/* Not nanosleep(), which is a cancellation point. */
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, 0);
}

static __attribute__((noinline)) int wait_for(pthread_spinlock_t *lock, const void *site)
{
	struct preload_thread before = preload_self;
	int error_before = errno;

	for (unsigned int times = 0; !take(lock); times++) {
		for (unsigned int spins = 0; spins < SPINS && is_worth_spinning(lock); spins++) {
			if (take(lock))
				goto taken;
			process_pause();
		}
		let_others_run(times);
	}
taken:
	errno = error_before;
	if (preload_report)
		preload_count_wait(UNSPIN_PRELOAD_SPINLOCK, (const void *)lock, site, before);
	return 0;
}

PRELOAD_API int pthread_spin_lock(pthread_spinlock_t *lock)
{
	return PRELOAD_LIKELY(take(lock)) ? 0 : wait_for(lock, __builtin_return_address(0));
}

PRELOAD_API int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	return take(lock) ? 0 : EBUSY;
}

PRELOAD_API int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	__atomic_store_n(lock, FREE, __ATOMIC_RELEASE);
	return 0;
}

PRELOAD_API int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	(void)shared;
	__atomic_store_n(lock, FREE, __ATOMIC_RELAXED);
	return 0;
}

PRELOAD_API int pthread_spin_destroy(pthread_spinlock_t *lock)
{
	(void)lock;
	return 0;
}
