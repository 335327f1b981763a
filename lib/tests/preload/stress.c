/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stress.c - more threads than CPUs under mutexes, condition variables, reader-writer locks and spinlocks, while signals
 * arrive, processes fork and threads are cancelled. Says "ok", or what was lost. Usage: stress [ROUNDS]
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 12
#define SLOTS 4

static long rounds = 300;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void check(int holds, const char *what)
{
	if (!holds)
		fail(what);
}

static void together(void *(*work)(void *number), int count)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < count; i++)
		check(!pthread_create(&threads[i], 0, work, (void *)i), "pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], 0);
}

/* Counters in plain memory, one for each lock. */
static pthread_mutex_t mutexes[4] = {
	PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
	PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
	PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};
static pthread_spinlock_t spinlock;
static volatile long counted[4], spun;

static void lock_somehow(int kind, long round)
{
	struct timespec soon;

	for (;;) {
		if (round % 3 == 0 && pthread_mutex_trylock(&mutexes[kind]) == 0)
			return;
		if (round % 5 == 0) {
			clock_gettime(CLOCK_MONOTONIC, &soon);
			soon.tv_nsec += 100000;
			if (soon.tv_nsec >= 1000000000)
				continue;
			if (pthread_mutex_clocklock(&mutexes[kind], CLOCK_MONOTONIC, &soon) == 0)
				return;
			continue;
		}
		check(!pthread_mutex_lock(&mutexes[kind]), "lock");
		return;
	}
}

static void *count_all(void *unused)
{
	(void)unused;
	for (long round = 0; round < rounds; round++) {
		for (int kind = 0; kind < 4; kind++) {
			lock_somehow(kind, round);
			if (kind == 1)
				check(!pthread_mutex_lock(&mutexes[kind]), "recursive lock");
			counted[kind] = counted[kind] + 1;
			if (kind == 1)
				check(!pthread_mutex_unlock(&mutexes[kind]), "recursive unlock");
			check(!pthread_mutex_unlock(&mutexes[kind]), "unlock");
		}
		pthread_spin_lock(&spinlock);
		spun = spun + 1;
		pthread_spin_unlock(&spinlock);
	}
	return 0;
}

static void count_under_every_lock(void)
{
	pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
	together(count_all, THREADS);
	for (int kind = 0; kind < 4; kind++)
		check(counted[kind] == THREADS * rounds, "a mutex let two in");
	check(spun == THREADS * rounds, "a spinlock let two in");
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t rwlock_for_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static volatile long first, second, written;

static void *read_and_write(void *number)
{
	pthread_rwlock_t *lock = (long)number % 2 ? &rwlock : &rwlock_for_writers;

	for (long round = 0; round < rounds; round++) {
		/* Both locks, always in this order: each excludes by itself. */
		if (round % 4 == 0) {
			pthread_rwlock_wrlock(&rwlock);
			pthread_rwlock_wrlock(&rwlock_for_writers);
			first = first + 1;
			second = second + 1;
			written = written + 1;
			pthread_rwlock_unlock(&rwlock_for_writers);
			pthread_rwlock_unlock(&rwlock);
			continue;
		}
		pthread_rwlock_rdlock(lock);
		check(first == second, "a reader among writers");
		pthread_rwlock_unlock(lock);
	}
	return 0;
}

/* A queue of a few slots: as many are taken as were put. */
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static long slots[SLOTS], put, taken, sum_put, sum_taken;

static void unlock_queue(void *unused)
{
	(void)unused;
	pthread_mutex_unlock(&queue_mutex);
}

static void *produce(void)
{
	for (long round = 0; round < rounds; round++) {
		pthread_mutex_lock(&queue_mutex);
		while (put - taken == SLOTS)
			pthread_cond_wait(&not_full, &queue_mutex);
		slots[put++ % SLOTS] = round;
		sum_put += round;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&queue_mutex);
	}
	return 0;
}

static void *consume(void)
{
	for (long round = 0; round < rounds; round++) {
		pthread_mutex_lock(&queue_mutex);
		while (put == taken)
			pthread_cond_wait(&not_empty, &queue_mutex);
		sum_taken += slots[taken++ % SLOTS];
		pthread_mutex_unlock(&queue_mutex);
		pthread_cond_signal(&not_full);
	}
	return 0;
}

static void *exchange(void *number)
{
	return (long)number % 2 ? produce() : consume();
}

/* Waits for what never comes, until it is cancelled; it holds the mutex then. */
static atomic_int cancelled_with_mutex;

static void note_cancellation(void *unused)
{
	atomic_fetch_add(&cancelled_with_mutex, pthread_mutex_trylock(&queue_mutex) == EBUSY);
	unlock_queue(unused);
}

static void *wait_for_ever(void *unused)
{
	pthread_mutex_lock(&queue_mutex);
	pthread_cleanup_push(note_cancellation, unused);
	for (;;)
		pthread_cond_wait(&not_empty, &queue_mutex);
	pthread_cleanup_pop(0);
	return 0;
}

/* Among the consumers are waiters that take signals and are cancelled: whoever is waits no longer than for one of them. */
static void *cancel_some(void *unused)
{
	(void)unused;
	for (long round = 0; round < rounds / 20 + 1; round++) {
		pthread_t thread;
		void *result;

		check(!pthread_create(&thread, 0, wait_for_ever, 0), "pthread_create");
		usleep(300);
		/* It may have taken the signal of a consumer. */
		pthread_cond_broadcast(&not_empty);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		check(result == PTHREAD_CANCELED, "not cancelled");
		pthread_cond_broadcast(&not_empty);
	}
	return 0;
}

static void exchange_while_some_are_cancelled(void)
{
	pthread_t canceller;

	check(!pthread_create(&canceller, 0, cancel_some, 0), "pthread_create");
	together(exchange, THREADS);
	pthread_join(canceller, 0);
	check(put == taken && sum_put == sum_taken && put == THREADS / 2 * rounds, "the queue lost something");
	check(cancelled_with_mutex == rounds / 20 + 1, "cancelled without the mutex");
	check(!pthread_cond_destroy(&not_empty) && !pthread_cond_destroy(&not_full), "destroy");
}

/* A barrier of mutex and condition variable, which is made and destroyed again and again, as soon as the last one leaves. */
struct barrier {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	int waiting, leaving;
};

static struct barrier *barriers[2];
static pthread_barrier_t start;

static void *pass_barriers(void *number)
{
	for (long round = 0; round < rounds; round++) {
		struct barrier *barrier;

		if (!number) {
			barrier = malloc(sizeof(*barrier));
			pthread_mutex_init(&barrier->mutex, 0);
			pthread_cond_init(&barrier->condition, 0);
			barrier->waiting = barrier->leaving = 0;
			barriers[round % 2] = barrier;
		}
		pthread_barrier_wait(&start);
		barrier = barriers[round % 2];
		pthread_mutex_lock(&barrier->mutex);
		if (++barrier->waiting == THREADS)
			pthread_cond_broadcast(&barrier->condition);
		while (barrier->waiting < THREADS)
			pthread_cond_wait(&barrier->condition, &barrier->mutex);
		int last = ++barrier->leaving == THREADS;
		pthread_mutex_unlock(&barrier->mutex);
		if (last) {
			/* No thread will use it: those before have unlocked or are about to return from unlock. */
			pthread_cond_destroy(&barrier->condition);
		}
		pthread_barrier_wait(&start);
		if (last) {
			pthread_mutex_destroy(&barrier->mutex);
			free(barrier);
		}
	}
	return 0;
}

/* Locks that others use at a fork: held across it, they are free in the child, whoever waited for them. */
static pthread_mutex_t forked_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t forked_rwlock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_cond_t forked_condition = PTHREAD_COND_INITIALIZER;
static atomic_int stop;
static volatile long at_fork;

static void take_both(void)
{
	pthread_mutex_lock(&forked_mutex);
	pthread_rwlock_wrlock(&forked_rwlock);
}

static void free_both(void)
{
	pthread_rwlock_unlock(&forked_rwlock);
	pthread_mutex_unlock(&forked_mutex);
}

static void *use_both(void *number)
{
	struct timespec soon;

	for (long round = 0; number ? !atomic_load(&stop) : round < 200; round++) {
		pthread_mutex_lock(&forked_mutex);
		at_fork = at_fork + 1;
		if (round % 8 == 0) {
			clock_gettime(CLOCK_REALTIME, &soon);
			soon.tv_nsec = (soon.tv_nsec + 50000) % 1000000000;
			pthread_cond_timedwait(&forked_condition, &forked_mutex, &soon);
		}
		pthread_mutex_unlock(&forked_mutex);
		if (round % 4)
			pthread_rwlock_rdlock(&forked_rwlock);
		else
			pthread_rwlock_wrlock(&forked_rwlock);
		pthread_rwlock_unlock(&forked_rwlock);
		pthread_cond_broadcast(&forked_condition);
	}
	return 0;
}

static void *use_in_child(void *unused)
{
	(void)unused;
	return use_both(0);
}

static int child(void)
{
	long before = at_fork;

	alarm(60); /* a child that hangs fails */
	if (pthread_mutex_trylock(&forked_mutex))
		return 2;
	pthread_mutex_unlock(&forked_mutex);
	together(use_in_child, 4);
	if (at_fork != before + 4 * 200)
		return 3;
	/* Nobody of this process waits any longer. */
	return pthread_cond_destroy(&forked_condition) ? 4 : 0;
}

static void fork_while_locked(void)
{
	pthread_t users[4];

	pthread_atfork(take_both, free_both, free_both);
	for (long i = 0; i < 4; i++)
		check(!pthread_create(&users[i], 0, use_both, (void *)1), "pthread_create");
	for (long round = 0; round < rounds / 10 + 1; round++) {
		pid_t process = fork();
		int status = -1;

		if (process == 0)
			_exit(child());
		check(process > 0 && waitpid(process, &status, 0) == process, "fork");
		if (status) {
			fprintf(stderr, "a child ended with %#x\n", status);
			exit(1);
		}
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(users[i], 0);
}

/* A token that one thread gives and another takes, while a third signals at any moment, without the mutex and for nothing. */
static pthread_mutex_t token_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t token_there = PTHREAD_COND_INITIALIZER;
static _Atomic int token, tokens_given;

static void *signal_for_nothing(void *unused)
{
	(void)unused;
	while (!atomic_load(&tokens_given))
		pthread_cond_signal(&token_there);
	return 0;
}

static void *take_tokens(void *unused)
{
	(void)unused;
	for (long round = 0; round < 20 * rounds; round++) {
		pthread_mutex_lock(&token_mutex);
		while (!atomic_load(&token))
			pthread_cond_wait(&token_there, &token_mutex);
		atomic_store(&token, 0);
		pthread_mutex_unlock(&token_mutex);
	}
	return 0;
}

static void *give_tokens(void *unused)
{
	(void)unused;
	for (long round = 0; round < 20 * rounds; round++) {
		time_t began = time(0);

		pthread_mutex_lock(&token_mutex);
		atomic_store(&token, 1);
		pthread_mutex_unlock(&token_mutex);
		pthread_cond_signal(&token_there);
		while (atomic_load(&token))
			check(time(0) - began < 20, "a signal was lost");
	}
	atomic_store(&tokens_given, 1);
	return 0;
}

static void *give_and_take(void *number)
{
	static void *(*const work[3])(void *) = {signal_for_nothing, take_tokens, give_tokens};

	return work[(long)number](0);
}

#include "counted_objects.h"

static void note_signal(int signal)
{
	(void)signal;
}

/* Interrupts all threads, without SA_RESTART, until the process ends. */
static void interrupt_all(void)
{
	struct sigaction action = {.sa_handler = note_signal};
	struct itimerval often = {{0, 700}, {0, 700}};

	sigaction(SIGPROF, &action, 0);
	setitimer(ITIMER_PROF, &often, 0);
}

int main(int count, char **arguments)
{
	if (count > 1)
		rounds = atol(arguments[1]);
	interrupt_all();
	count_under_every_lock();
	together(read_and_write, THREADS);
	check(written == first, "a rwlock let two writers in");
	exchange_while_some_are_cancelled();
	/* Again and again, since threads are placed anew each time. */
	for (int time = 0; time < 10; time++) {
		atomic_store(&tokens_given, 0);
		together(give_and_take, 3);
	}
	pthread_barrier_init(&start, 0, THREADS);
	together(pass_barriers, THREADS);
	pthread_barrier_init(&between_objects, 0, THREADS);
	together(let_go, THREADS);
	fork_while_locked();
	printf("ok\n");
	return 0;
}
