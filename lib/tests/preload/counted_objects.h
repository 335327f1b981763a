/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* counted_objects.h - objects whose memory is given back by whoever has had their lock last. A part of stress.c. */
#ifndef UNSPIN_LIB_TESTS_COUNTED_OBJECTS_H
#define UNSPIN_LIB_TESTS_COUNTED_OBJECTS_H

#include <pthread.h>
#include <sys/mman.h>

/* Objects that count their references under a lock of their own, whose last user gives the memory back. */
struct counted_object {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	int references;
};
static struct counted_object *shared_object;
static pthread_barrier_t between_objects;

/* Returns whether the caller was the last one. */
static _Bool let_go_of_mutex(struct counted_object *object)
{
	int left;

	pthread_mutex_lock(&object->mutex);
	left = --object->references;
	pthread_mutex_unlock(&object->mutex);
	return !left;
}

/* One thread waits, as a writer, until all others have let go, every third one as a writer and the others as readers. */
static _Bool let_go_of_rwlock(struct counted_object *object, long number)
{
	int left = 0;

	if (number % 3 == 1)
		pthread_rwlock_wrlock(&object->rwlock);
	else if (number)
		pthread_rwlock_rdlock(&object->rwlock);
	if (number) {
		__atomic_sub_fetch(&object->references, 1, __ATOMIC_RELAXED);
		pthread_rwlock_unlock(&object->rwlock);
		return 0;
	}
	while (left != 1) {
		pthread_rwlock_wrlock(&object->rwlock);
		left = object->references;
		pthread_rwlock_unlock(&object->rwlock);
	}
	return 1;
}

static void *let_go(void *number)
{
	for (long round = 0; round < 4 * rounds; round++) {
		struct counted_object *object;

		if (pthread_barrier_wait(&between_objects) == PTHREAD_BARRIER_SERIAL_THREAD) {
			object = mmap(0, sizeof(*object), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			check(object != MAP_FAILED, "mmap");
			object->references = THREADS;
			shared_object = object;
		}
		pthread_barrier_wait(&between_objects);
		object = shared_object;
		if (round % 2 ? let_go_of_mutex(object)
			      : let_go_of_rwlock(object, ((long)number + round / 2) % THREADS))
			munmap(object, sizeof(*object));
	}
	return 0;
}

#endif
