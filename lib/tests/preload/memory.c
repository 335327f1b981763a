/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memory.c - a program with a malloc of its own, which locks a mutex, as those of jemalloc and tcmalloc do: no pthread
 * function may call it. Says "ok", or which one did.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;
static pthread_mutex_t arena_mutex = PTHREAD_MUTEX_INITIALIZER;
/* The pthread function that this thread is in; 0: none. */
static _Thread_local const char *volatile inside;

void *malloc(size_t bytes)
{
	void *found;

	if (inside) {
		if (write(STDERR_FILENO, inside, strlen(inside)) < 0)
			_exit(3);
		_exit(2);
	}
	pthread_mutex_lock(&arena_mutex);
	found = arena + used;
	used += (bytes + 15) & ~(size_t)15;
	if (used > sizeof(arena))
		found = 0;
	pthread_mutex_unlock(&arena_mutex);
	return found;
}

void free(void *memory)
{
	(void)memory;
}

void *calloc(size_t count, size_t bytes)
{
	return malloc(count * bytes); /* the arena is zero, and never used twice */
}

void *realloc(void *memory, size_t bytes)
{
	void *found = malloc(bytes);

	/* From a place in the arena, so there are as many bytes before its end. */
	return memory && found ? memcpy(found, memory, bytes) : found;
}

#define IN(call)                                                                                                       \
	do {                                                                                                           \
		inside = #call " allocates memory\n";                                                                  \
		(void)call;                                                                                            \
		inside = 0;                                                                                            \
	} while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, made;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static mtx_t c11;
static volatile long sum;

static void *use(void *unused)
{
	struct timespec soon;

	for (int i = 0; i < 2000; i++) {
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec = (soon.tv_nsec + 10000) % 1000000000;
		IN(pthread_mutex_lock(&mutex));
		sum = sum + 1;
		if (i % 100 == 0)
			IN(pthread_cond_timedwait(&condition, &mutex, &soon));
		IN(pthread_mutex_unlock(&mutex));
		IN(pthread_cond_signal(&condition));
		IN(pthread_cond_broadcast(&condition));
		IN(pthread_rwlock_rdlock(&rwlock));
		IN(pthread_rwlock_unlock(&rwlock));
		IN(pthread_rwlock_wrlock(&rwlock));
		IN(pthread_rwlock_unlock(&rwlock));
		IN(pthread_spin_lock(&spinlock));
		IN(pthread_spin_unlock(&spinlock));
		IN(mtx_lock(&c11));
		IN(mtx_unlock(&c11));
		free(malloc(8));
	}
	return unused;
}

int main(void)
{
	pthread_t threads[6];

	IN(pthread_spin_init(&spinlock, 0));
	IN(mtx_init(&c11, mtx_plain));
	IN(pthread_mutex_init(&made, 0));
	IN(pthread_mutex_trylock(&made));
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], 0, use, 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], 0);
	printf("%s\n", sum == 12000 ? "ok" : "lost");
	return 0;
}
