/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * results.c - prints the result of every pthread and C11 function on objects of every kind, one a line: the same with and
 * without the library.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const char *name_of(int error)
{
	return error ? strerrorname_np(error) : "0";
}

#define SAY(call) printf("%s: %s\n", #call, name_of(call))

/* Runs a call in another thread. */
struct other {
	int (*call)(void *object);
	void *object;
	int result;
};

static void *run_other(void *argument)
{
	struct other *other = argument;

	other->result = other->call(other->object);
	return 0;
}

static int elsewhere(int (*call)(void *object), void *object)
{
	struct other other = {call, object, 0};
	pthread_t thread;

	if (pthread_create(&thread, 0, run_other, &other) || pthread_join(thread, 0))
		abort();
	return other.result;
}

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += ms * 1000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static const struct timespec no_time = {0, -1}, no_time_either = {0, 1000000000}, long_ago = {-5, 0};

static int trylock(void *mutex)
{
	return pthread_mutex_trylock(mutex);
}

static int unlock(void *mutex)
{
	return pthread_mutex_unlock(mutex);
}

static int timedlock(void *mutex)
{
	struct timespec time = in_ms(CLOCK_REALTIME, 5);

	return pthread_mutex_timedlock(mutex, &time);
}

static int clocklock(void *mutex)
{
	struct timespec time = in_ms(CLOCK_MONOTONIC, 5);

	return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &time);
}

static int lock_without_time(void *mutex)
{
	return pthread_mutex_timedlock(mutex, &no_time);
}

static int lock_without_time_either(void *mutex)
{
	return pthread_mutex_timedlock(mutex, &no_time_either);
}

static int lock_long_ago(void *mutex)
{
	return pthread_mutex_timedlock(mutex, &long_ago);
}

static int lock_by_no_clock(void *mutex)
{
	return pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &long_ago);
}

/* `again`: the holder asks once more, which a default mutex would wait for. */
static void try_mutex(pthread_mutex_t *mutex, int again)
{
	struct timespec later = in_ms(CLOCK_REALTIME, 1000);

	SAY(pthread_mutex_lock(mutex));
	SAY(pthread_mutex_trylock(mutex));
	if (again) {
		SAY(pthread_mutex_lock(mutex));
		SAY(pthread_mutex_timedlock(mutex, &later));
		SAY(pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &later));
	}
	SAY(elsewhere(trylock, mutex));
	SAY(elsewhere(timedlock, mutex));
	SAY(elsewhere(clocklock, mutex));
	SAY(elsewhere(lock_without_time, mutex));
	SAY(elsewhere(lock_without_time_either, mutex));
	SAY(elsewhere(lock_long_ago, mutex));
	SAY(elsewhere(lock_by_no_clock, mutex));
	SAY(pthread_mutex_destroy(mutex));
	if (again)
		SAY(elsewhere(unlock, mutex));
	while (pthread_mutex_unlock(mutex) == 0 && elsewhere(trylock, mutex) == EBUSY)
		printf("held more than once\n");
	/* The other thread has taken it last: to it belong the unlocks of those that know their owner. */
	SAY(pthread_mutex_trylock(mutex));
}

static pthread_mutex_t *new_mutex(int type, int shared, int robust, int protocol)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t *mutex = malloc(sizeof(*mutex));

	memset(mutex, 0x5a, sizeof(*mutex));
	pthread_mutexattr_init(&attributes);
	SAY(pthread_mutexattr_settype(&attributes, type));
	SAY(pthread_mutexattr_setpshared(&attributes, shared));
	SAY(pthread_mutexattr_setrobust(&attributes, robust));
	SAY(pthread_mutexattr_setprotocol(&attributes, protocol));
	SAY(pthread_mutex_init(mutex, &attributes));
	pthread_mutexattr_destroy(&attributes);
	return mutex;
}

static void try_mutexes(void)
{
	static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
	static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	static pthread_mutex_t checks = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

	printf("static\n");
	try_mutex(&plain, 0);
	try_mutex(&recursive, 1);
	try_mutex(&checks, 1);
	try_mutex(&adaptive, 0);
	for (int type = 0; type < 4; type++) {
		int again = type == PTHREAD_MUTEX_RECURSIVE_NP || type == PTHREAD_MUTEX_ERRORCHECK_NP;

		printf("type %d\n", type);
		try_mutex(new_mutex(type, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE), again);
		try_mutex(new_mutex(type, PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE), again);
		try_mutex(new_mutex(type, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE), again);
		try_mutex(new_mutex(type, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT), again);
	}
}

static int lock_and_leave(void *mutex)
{
	return pthread_mutex_lock(mutex);
}

static void try_robust(void)
{
	pthread_mutex_t *mutex =
		new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec time = in_ms(CLOCK_REALTIME, 5);

	SAY(elsewhere(lock_and_leave, mutex));
	SAY(pthread_mutex_lock(mutex));
	SAY(pthread_mutex_consistent(mutex));
	SAY(pthread_cond_timedwait(&condition, mutex, &time));
	SAY(pthread_mutex_unlock(mutex));
	SAY(elsewhere(lock_and_leave, mutex));
	SAY(pthread_mutex_lock(mutex));
	SAY(pthread_mutex_unlock(mutex));
	SAY(pthread_mutex_lock(mutex));
}

/* A destroyed mutex, and one that is made anew in the same memory. */
static void try_destroyed(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	SAY(pthread_mutex_destroy(&mutex));
	SAY(pthread_mutex_lock(&mutex));
	SAY(pthread_mutex_trylock(&mutex));
	SAY(pthread_mutex_unlock(&mutex));
	SAY(pthread_mutex_destroy(&mutex));
	SAY(pthread_mutex_init(&mutex, 0));
	try_mutex(&mutex, 0);
}

static int tryrdlock(void *lock)
{
	int error = pthread_rwlock_tryrdlock(lock);

	if (!error)
		pthread_rwlock_unlock(lock);
	return error;
}

static int trywrlock(void *lock)
{
	int error = pthread_rwlock_trywrlock(lock);

	if (!error)
		pthread_rwlock_unlock(lock);
	return error;
}

static int timedrdlock(void *lock)
{
	struct timespec time = in_ms(CLOCK_REALTIME, 5);

	return pthread_rwlock_timedrdlock(lock, &time);
}

static int clockwrlock(void *lock)
{
	struct timespec time = in_ms(CLOCK_MONOTONIC, 5);

	return pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &time);
}

static void try_rwlock(pthread_rwlock_t *lock)
{
	struct timespec later = in_ms(CLOCK_REALTIME, 1000);

	SAY(pthread_rwlock_rdlock(lock));
	SAY(pthread_rwlock_rdlock(lock));
	SAY(elsewhere(tryrdlock, lock));
	SAY(elsewhere(trywrlock, lock));
	SAY(elsewhere(clockwrlock, lock));
	SAY(pthread_rwlock_trywrlock(lock));
	SAY(pthread_rwlock_unlock(lock));
	SAY(pthread_rwlock_unlock(lock));
	SAY(pthread_rwlock_wrlock(lock));
	SAY(pthread_rwlock_rdlock(lock));
	SAY(pthread_rwlock_wrlock(lock));
	SAY(pthread_rwlock_timedrdlock(lock, &later));
	SAY(pthread_rwlock_timedwrlock(lock, &later));
	SAY(pthread_rwlock_timedrdlock(lock, &no_time));
	SAY(pthread_rwlock_clockwrlock(lock, CLOCK_PROCESS_CPUTIME_ID, &later));
	SAY(pthread_rwlock_tryrdlock(lock));
	SAY(pthread_rwlock_trywrlock(lock));
	SAY(elsewhere(tryrdlock, lock));
	SAY(elsewhere(timedrdlock, lock));
	SAY(pthread_rwlock_unlock(lock));
	SAY(elsewhere(trywrlock, lock));
	SAY(pthread_rwlock_timedwrlock(lock, &later));
	SAY(pthread_rwlock_unlock(lock));
	SAY(pthread_rwlock_destroy(lock));
}

static void try_rwlocks(void)
{
	static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
	static pthread_rwlock_t for_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

	printf("rwlocks\n");
	try_rwlock(&plain);
	try_rwlock(&for_writers);
	for (int shared = 0; shared < 2; shared++) {
		for (int kind = 0; kind < 3; kind++) {
			pthread_rwlockattr_t attributes;
			pthread_rwlock_t lock;

			memset(&lock, 0x5a, sizeof(lock));
			pthread_rwlockattr_init(&attributes);
			SAY(pthread_rwlockattr_setkind_np(&attributes, kind));
			SAY(pthread_rwlockattr_setpshared(&attributes, shared));
			SAY(pthread_rwlock_init(&lock, &attributes));
			try_rwlock(&lock);
		}
	}
}

static pthread_spinlock_t spinlock;

static int try_spin(void *unused)
{
	(void)unused;
	return pthread_spin_trylock(&spinlock);
}

static void try_spinlock(void)
{

	printf("spinlock\n");
	SAY(pthread_spin_init(&spinlock, PTHREAD_PROCESS_SHARED));
	SAY(pthread_spin_lock(&spinlock));
	SAY(pthread_spin_trylock(&spinlock));
	SAY(elsewhere(try_spin, 0));
	SAY(pthread_spin_unlock(&spinlock));
	SAY(elsewhere(try_spin, 0));
	SAY(pthread_spin_trylock(&spinlock));
	SAY(pthread_spin_unlock(&spinlock));
	SAY(pthread_spin_destroy(&spinlock));
}

static void try_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock)
{
	struct timespec soon = in_ms(clock, 5), monotonic = in_ms(CLOCK_MONOTONIC, 5);

	SAY(pthread_cond_signal(condition));
	SAY(pthread_cond_broadcast(condition));
	SAY(pthread_mutex_lock(mutex));
	SAY(pthread_cond_timedwait(condition, mutex, &soon));
	SAY(pthread_cond_timedwait(condition, mutex, &no_time));
	SAY(pthread_cond_timedwait(condition, mutex, &no_time_either));
	SAY(pthread_cond_timedwait(condition, mutex, &long_ago));
	SAY(pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &monotonic));
	SAY(pthread_cond_clockwait(condition, mutex, CLOCK_PROCESS_CPUTIME_ID, &monotonic));
	SAY(elsewhere(trylock, mutex));
	SAY(pthread_mutex_unlock(mutex));
	SAY(pthread_cond_destroy(condition));
}

static void try_conditions(void)
{
	static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
	static pthread_mutex_t checks = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	pthread_mutex_t *shared =
		new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);

	printf("conditions\n");
	/* Who does not hold the mutex is told so where the mutex knows. */
	SAY(pthread_cond_wait(&condition, &checks));
	try_condition(&condition, &plain, CLOCK_REALTIME);
	for (int kind = 0; kind < 4; kind++) {
		pthread_condattr_t attributes;
		pthread_cond_t made;

		memset(&made, 0x5a, sizeof(made));
		pthread_condattr_init(&attributes);
		SAY(pthread_condattr_setpshared(&attributes, kind & 1));
		SAY(pthread_condattr_setclock(&attributes, kind & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME));
		SAY(pthread_cond_init(&made, &attributes));
		try_condition(&made, kind & 1 ? shared : &plain, kind & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME);
		/* Of two kinds that libc and the library would each take for their own. */
		SAY(pthread_cond_init(&made, &attributes));
		try_condition(&made, kind & 1 ? &plain : shared, kind & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME);
	}
}

static int try_mtx(void *mutex)
{
	return mtx_trylock(mutex);
}

static int timed_mtx(void *mutex)
{
	struct timespec time = in_ms(CLOCK_REALTIME, 5);

	return mtx_timedlock(mutex, &time);
}

#define SAY_C11(call) printf("%s: %d\n", #call, call)

static void try_c11(void)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);
	const int types[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive, 8};
	cnd_t condition;
	mtx_t mutex;

	printf("C11\n");
	for (int i = 0; i < 5; i++) {
		SAY_C11(mtx_init(&mutex, types[i]));
		if (types[i] == 8)
			break;
		SAY_C11(mtx_lock(&mutex));
		SAY_C11(mtx_trylock(&mutex));
		SAY_C11(elsewhere(try_mtx, &mutex));
		SAY_C11(elsewhere(timed_mtx, &mutex));
		SAY_C11(mtx_unlock(&mutex));
		if (types[i] & mtx_recursive)
			SAY_C11(mtx_unlock(&mutex));
		SAY_C11(cnd_init(&condition));
		SAY_C11(cnd_signal(&condition));
		SAY_C11(cnd_broadcast(&condition));
		SAY_C11(mtx_lock(&mutex));
		SAY_C11(cnd_timedwait(&condition, &mutex, &soon));
		SAY_C11(mtx_unlock(&mutex));
		cnd_destroy(&condition);
		mtx_destroy(&mutex);
	}
}

int main(void)
{
	try_mutexes();
	try_robust();
	try_destroyed();
	try_rwlocks();
	try_spinlock();
	try_conditions();
	try_c11();
	return 0;
}
