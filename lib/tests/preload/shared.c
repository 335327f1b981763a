/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shared.c - objects that processes share, robust and priority-inheriting mutexes, which are libc's: they work with and without
 * the library, and beside objects that are the library's. Says "ok".
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 500

struct shared {
	pthread_mutex_t mutex, robust, inherits;
	pthread_cond_t condition;
	pthread_rwlock_t rwlock;
	pthread_spinlock_t spinlock;
	volatile long turn, sum;
};

static struct shared *shared;
/* Not shared: the library's, with a condition variable that is not. */
static pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long own_turn;

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void make(void)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t condition;
	pthread_rwlockattr_t rwlock;

	shared = mmap(0, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED, "mmap");
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	check(!pthread_mutex_init(&shared->mutex, &mutex), "a shared mutex");
	pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
	check(!pthread_mutex_init(&shared->robust, &mutex), "a robust mutex");
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
	check(!pthread_mutex_init(&shared->inherits, &mutex), "a mutex with priority inheritance");
	pthread_condattr_init(&condition);
	pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	check(!pthread_cond_init(&shared->condition, &condition), "a shared condition variable");
	pthread_rwlockattr_init(&rwlock);
	pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
	check(!pthread_rwlock_init(&shared->rwlock, &rwlock), "a shared rwlock");
	check(!pthread_spin_init(&shared->spinlock, PTHREAD_PROCESS_SHARED), "a shared spinlock");
}

static void take_turns(long own)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&shared->mutex);
		while (shared->turn != own)
			pthread_cond_wait(&shared->condition, &shared->mutex);
		shared->turn = !own;
		pthread_cond_broadcast(&shared->condition);
		pthread_mutex_unlock(&shared->mutex);
		pthread_rwlock_wrlock(&shared->rwlock);
		shared->sum = shared->sum + 1;
		pthread_rwlock_unlock(&shared->rwlock);
		pthread_spin_lock(&shared->spinlock);
		pthread_rwlock_wrlock(&shared->rwlock);
		shared->sum = shared->sum + 1;
		pthread_rwlock_unlock(&shared->rwlock);
		pthread_spin_unlock(&shared->spinlock);
	}
}

static void *take_own_turns(void *own)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&own_mutex);
		while (own_turn != (long)own)
			pthread_cond_wait(&shared->condition, &own_mutex);
		own_turn = !own;
		pthread_mutex_unlock(&own_mutex);
		pthread_cond_signal(&shared->condition);
		pthread_mutex_lock(&shared->inherits);
		pthread_mutex_unlock(&shared->inherits);
	}
	return 0;
}

static void wait_for(pid_t child)
{
	int status;

	check(waitpid(child, &status, 0) == child && status == 0, "the child");
}

int main(void)
{
	pthread_t threads[2];
	pid_t child;

	make();
	child = fork();
	if (child == 0) {
		take_turns(1);
		_exit(0);
	}
	take_turns(0);
	wait_for(child);
	check(shared->sum == 4 * ROUNDS, "shared locks let two in");
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(&shared->robust);
		_exit(0);
	}
	wait_for(child);
	check(pthread_mutex_lock(&shared->robust) == EOWNERDEAD, "a robust mutex does not say that its owner died");
	check(!pthread_mutex_consistent(&shared->robust) && !pthread_mutex_unlock(&shared->robust), "consistent");
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, take_own_turns, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	printf("ok\n");
	return 0;
}
