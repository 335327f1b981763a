// SPDX-License-Identifier: GPL-2.0-only
/*
 * mmaps - the memory-mapping load of VEE'13's evaluation, after what ebizzy does with "always mmap" (its source is not used):
 * every thread maps a chunk, copies a shared one into it, looks a few keys up, unmaps it, over and over. In one address space
 * that is mmap's semaphore, page faults, the page allocator's locks and a TLB shootdown for each iteration.
 *
 * Usage: mmaps THREADS ITERATIONS, 1..256 and 1..1000000; prints "Time: SECONDS" for all threads' iterations, or fails with a line.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CHUNK_WORDS 16384u /* of 4 bytes: 64 KiB, 16 pages */
#define LOOKUPS 16u
#define THREADS_MAX 256

static uint32_t shared[CHUNK_WORDS]; /* sorted: word i is 2 i */
static unsigned long iterations;
static pthread_barrier_t begin;

/* Index of the key in a sorted chunk; CHUNK_WORDS when it is not there. */
static uint32_t look_up(const uint32_t *chunk, uint32_t key)
{
	uint32_t low = 0, high = CHUNK_WORDS;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (chunk[middle] == key)
			return middle;
		if (chunk[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return CHUNK_WORDS;
}

/* Returns null, or a message. */
static void *run(void *seed)
{
	uint32_t random = (uint32_t)(uintptr_t)seed;

	pthread_barrier_wait(&begin);
	for (unsigned long iteration = 0; iteration < iterations; iteration++) {
		uint32_t *chunk =
			mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (chunk == MAP_FAILED)
			return "mmap failed";
		memcpy(chunk, shared, sizeof(shared));
		for (unsigned lookup = 0; lookup < LOOKUPS; lookup++) {
			uint32_t wanted;

			random = random * 1664525u + 1013904223u; /* Knuth's, as in Numerical Recipes */
			wanted = (random >> 8) % CHUNK_WORDS;
			if (look_up(chunk, 2 * wanted) != wanted)
				return "a copy differs from its original";
		}
		if (munmap(chunk, sizeof(shared)))
			return "munmap failed";
	}
	return NULL;
}

int main(int count, char **words)
{
	int threads = count == 3 ? atoi(words[1]) : 0;
	pthread_t thread[THREADS_MAX];
	struct timespec from, to;
	void *message = NULL;

	iterations = count == 3 ? strtoul(words[2], NULL, 10) : 0;
	if (threads < 1 || threads > THREADS_MAX || iterations < 1 || iterations > 1000000) {
		fputs("usage: mmaps THREADS ITERATIONS\n", stderr);
		return 2;
	}
	for (uint32_t word = 0; word < CHUNK_WORDS; word++)
		shared[word] = 2 * word;
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)(i + 1))) {
			fputs("mmaps: a thread could not be started\n", stderr);
			return 1;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < threads; i++) {
		void *returned;

		pthread_join(thread[i], &returned);
		message = returned ? returned : message;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (message) {
		fprintf(stderr, "mmaps: %s\n", (char *)message);
		return 1;
	}
	printf("Time: %.6f\n", (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	return 0;
}
