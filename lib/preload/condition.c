/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * condition.c - pthread_cond_t: a sequence number on which waiters block, and how many wait.
 *
 * A waiter reads the sequence, then counts itself, while it holds the mutex; a signal marks one that is counted as signalled,
 * changes the sequence, then wakes one that blocks. So whoever was counted when the signal came, without the mutex perhaps,
 * is woken or finds the sequence changed. In the other order one could be marked, read the sequence as it is after the
 * signal, and block. Who leaves takes a mark with it. While as many are marked as wait, each of them returns without a
 * further signal, which then does nothing: a waiter that has been woken and has no CPU yet costs no more system calls.
 *
 * Who leaves does not touch the object after that, so that whoever has seen the last one leave may destroy it. Versions of
 * these functions before GLIBC_2.3.2 had an object of the same size, so that the same functions serve for both.
 */
#include <errno.h>
#include <sched.h>

#include "object.h"

/* The word of waiters: the process's generation (platform_generation()), how many are signalled, how many there are. */
#define COUNT_BITS 24
#define COUNT_MAX ((1ull << COUNT_BITS) - 1)

struct counts {
	unsigned long long waiters, signalled;
};

static struct counts unpack(unsigned long long word)
{
	if (word >> 2 * COUNT_BITS != (platform_generation() & 0xffff))
		return (struct counts){0}; /* of threads that a fork has left behind */
	return (struct counts){.waiters = word & COUNT_MAX, .signalled = word >> COUNT_BITS & COUNT_MAX};
}

static unsigned long long pack(struct counts counts)
{
	return (unsigned long long)(platform_generation() & 0xffff) << 2 * COUNT_BITS | counts.signalled << COUNT_BITS |
	       counts.waiters;
}

/* Changes the counts by `change`, which returns 0 to leave them. Sequentially consistent. Returns whether it did. */
static inline _Bool update(struct preload_condition *condition, _Bool (*change)(struct counts *counts))
{
	unsigned long long word = __atomic_load_n(&condition->waiters, __ATOMIC_SEQ_CST);
	struct counts counts;

	do {
		counts = unpack(word);
		if (!change(&counts))
			return 0;
	} while (!__atomic_compare_exchange_n(&condition->waiters, &word, pack(counts), 0, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return 1;
}

static _Bool joins(struct counts *counts)
{
	counts->waiters++;
	return 1;
}

static _Bool leaves(struct counts *counts)
{
	if (counts->waiters)
		counts->waiters--;
	if (counts->signalled)
		counts->signalled--;
	return 1;
}

static _Bool marks_one(struct counts *counts)
{
	if (counts->signalled >= counts->waiters)
		return 0;
	counts->signalled++;
	return 1;
}

static _Bool marks_all(struct counts *counts)
{
	if (counts->signalled >= counts->waiters)
		return 0;
	counts->signalled = counts->waiters;
	return 1;
}

static void signal_one(struct preload_condition *condition)
{
	if (!update(condition, marks_one))
		return;
	platform_fetch_add_ordered(&condition->sequence, 1);
	platform_unblock(&condition->sequence);
}

/* A call that waits. */
struct call {
	struct preload_condition *condition;
	pthread_mutex_t *mutex;
	const void *site;
	unspin_u32 sequence;
};

/* The thread was cancelled: it has the mutex while its handlers run, and the signal that it may have got goes to another. */
static void cancelled(void *argument)
{
	const struct call *call = argument;
	_Bool signalled = platform_load_acquire(&call->condition->sequence) != call->sequence;

	if (signalled)
		signal_one(call->condition);
	update(call->condition, leaves);
	preload_mutex_lock(call->mutex, call->site);
}

/* Blocks until a signal (returns 1), or until the deadline has passed. A cancellation point. */
static _Bool block(struct call *call, const struct process_deadline *deadline)
{
	_Bool in_time = 1;
	int type;

	pthread_cleanup_push(cancelled, call);
	/* Cancelled at any instruction from here on: nothing between changes anything but the kernel's queue. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	while (in_time && platform_load_acquire(&call->condition->sequence) == call->sequence)
		in_time = platform_block(&call->condition->sequence, call->sequence, deadline);
	pthread_setcanceltype(type, 0);
	pthread_cleanup_pop(0);
	return in_time || platform_load_acquire(&call->condition->sequence) != call->sequence;
}

static int wait_ours(pthread_cond_t *of_libc, pthread_mutex_t *mutex, const struct process_deadline *deadline,
		     const void *site)
{
	struct call call = {.condition = preload_condition(of_libc), .mutex = mutex, .site = site};
	struct preload_thread before = preload_self;
	_Bool signalled;
	int error;

	/* In this order: see above. */
	call.sequence = platform_load_acquire(&call.condition->sequence);
	update(call.condition, joins);
	error = preload_mutex_unlock(mutex);
	if (error) {
		update(call.condition, leaves);
		return error;
	}
	signalled = block(&call, deadline);
	update(call.condition, leaves);
	if (preload_report)
		preload_count_wait(UNSPIN_PRELOAD_CONDITION, of_libc, site, before);
	error = preload_mutex_lock(mutex, site);
	return error ? error : signalled ? 0 : ETIMEDOUT;
}

/*
 * libc's condition variable that processes share, with a mutex of ours: libc would take the mutex for its own. The waiter
 * blocks in libc under a mutex of libc's instead, which signals of this process take, too: so none comes between.
 */
static pthread_mutex_t bridge = PTHREAD_MUTEX_INITIALIZER;

static void leave_bridge(void *unused)
{
	(void)unused;
	preload_libc()->pthread_mutex_unlock(&bridge);
}

static void lock_ours(void *mutex)
{
	preload_mutex_lock(mutex, 0);
}

static int wait_bridged(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
	const struct preload_libc *libc = preload_libc();
	int error;

	libc->pthread_mutex_lock(&bridge);
	error = preload_mutex_unlock(mutex);
	if (error) {
		libc->pthread_mutex_unlock(&bridge);
		return error;
	}
	pthread_cleanup_push(lock_ours, mutex);
	pthread_cleanup_push(leave_bridge, 0);
	if (!time)
		error = libc->pthread_cond_wait(condition, &bridge);
	else if (clock < 0)
		error = libc->pthread_cond_timedwait(condition, &bridge, time);
	else
		error = libc->pthread_cond_clockwait(condition, &bridge, clock, time);
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(1);
	return error;
}

static int wake_bridged(pthread_cond_t *condition, _Bool all)
{
	const struct preload_libc *libc = preload_libc();
	int error;

	libc->pthread_mutex_lock(&bridge);
	error = all ? libc->pthread_cond_broadcast(condition) : libc->pthread_cond_signal(condition);
	libc->pthread_mutex_unlock(&bridge);
	return error;
}

PRELOAD_API int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	if (PRELOAD_LIKELY(preload_condition_is_ours(condition)))
		return wait_ours(condition, mutex, 0, __builtin_return_address(0));
	if (preload_mutex_is_ours(preload_mutex(mutex)))
		return wait_bridged(condition, mutex, -1, 0);
	return preload_libc()->pthread_cond_wait(condition, mutex);
}

PRELOAD_API int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time)
{
	_Bool monotonic = condition->__data.__wrefs & PRELOAD_CONDITION_MONOTONIC;
	struct process_deadline deadline;

	if (!preload_is_time(time))
		return EINVAL;
	if (PRELOAD_LIKELY(preload_condition_is_ours(condition))) {
		preload_deadline(&deadline, monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, time);
		return wait_ours(condition, mutex, &deadline, __builtin_return_address(0));
	}
	if (preload_mutex_is_ours(preload_mutex(mutex)))
		return wait_bridged(condition, mutex, -1, time);
	return preload_libc()->pthread_cond_timedwait(condition, mutex, time);
}

PRELOAD_API int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
				       const struct timespec *time)
{
	struct process_deadline deadline;

	if (!preload_is_time(time) || !preload_deadline(&deadline, clock, time))
		return EINVAL;
	if (PRELOAD_LIKELY(preload_condition_is_ours(condition)))
		return wait_ours(condition, mutex, &deadline, __builtin_return_address(0));
	if (preload_mutex_is_ours(preload_mutex(mutex)))
		return wait_bridged(condition, mutex, clock, time);
	return preload_libc()->pthread_cond_clockwait(condition, mutex, clock, time);
}

PRELOAD_API int pthread_cond_signal(pthread_cond_t *condition)
{
	if (!PRELOAD_LIKELY(preload_condition_is_ours(condition)))
		return wake_bridged(condition, 0);
	signal_one(preload_condition(condition));
	return 0;
}

PRELOAD_API int pthread_cond_broadcast(pthread_cond_t *of_libc)
{
	struct preload_condition *condition = preload_condition(of_libc);

	if (!PRELOAD_LIKELY(preload_condition_is_ours(of_libc)))
		return wake_bridged(of_libc, 1);
	if (!update(condition, marks_all))
		return 0;
	platform_fetch_add_ordered(&condition->sequence, 1);
	platform_unblock_all(&condition->sequence);
	return 0;
}

PRELOAD_API int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
	int error = preload_libc()->pthread_cond_init(condition, attributes);

	if (!error && !preload_condition_is_ours(condition))
		preload_count_passed(UNSPIN_PRELOAD_PASSED_SHARED_CONDITION);
	return error;
}

/* Waiters that were woken may still be about to leave: waits for them, as libc does. */
PRELOAD_API int pthread_cond_destroy(pthread_cond_t *condition)
{
	if (!preload_condition_is_ours(condition))
		return preload_libc()->pthread_cond_destroy(condition);
	while (unpack(__atomic_load_n(&preload_condition(condition)->waiters, __ATOMIC_SEQ_CST)).waiters)
		sched_yield();
	return 0;
}
