/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * race.c - one lock's validation driver between POSIX threads, for ThreadSanitizer.
 *
 * race LOCK THREADS SPINS: exit status 0 when the counts add up; ThreadSanitizer adds its own. LOCK is a name of
 * lock_kinds.h, or "broken": no lock at all, so that a sanitizer that sees nothing is itself seen.
 */
#include "../../c/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 16u

extern const struct driver driver_broken;

struct job {
	const struct driver *driver;
	const struct driver_run *run;
	unspin_u32 thread;
	pthread_t posix;
	struct driver_validation seen;
};

static pthread_barrier_t together;

static void *work(void *argument)
{
	struct job *job = argument;

	pthread_barrier_wait(&together);
	job->driver->validate(job->run, job->thread, &job->seen);
	return 0;
}

static const struct driver *find(const char *name)
{
	for (unsigned kind = 0; kind < UNSPIN_LOCK_KIND_COUNT; kind++)
		if (!strcmp(driver_table[kind]->name, name))
			return driver_table[kind];
	return strcmp(name, "broken") ? 0 : &driver_broken;
}

/* Returns entries that the threads counted; adds violations. */
static unspin_u64 run_jobs(struct job *jobs, unsigned threads, unspin_u64 *violations)
{
	unspin_u64 entries = 0;

	pthread_barrier_init(&together, 0, threads);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&jobs[i].posix, 0, work, &jobs[i]))
			exit(3);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(jobs[i].posix, 0);
		entries += jobs[i].seen.locked + jobs[i].seen.try_locked;
		*violations += jobs[i].seen.violations;
	}
	return entries;
}

int main(int count, char **arguments)
{
	static struct unspin_distribution hold;
	static struct job jobs[THREADS_MAX];
	struct platform_word phase = {DRIVER_MEASURE};
	const struct driver *driver = count == 4 ? find(arguments[1]) : 0;
	unsigned threads = driver ? (unsigned)atoi(arguments[2]) : 0;
	unspin_u64 violations = 0, entries;
	struct driver_run run = {
		.user_work = &hold,
		.kernel_work = &hold,
		.hold = &hold,
		.phase = &phase,
		.locks = 1,
		.pause_every_spins = 1,
		.stall_spins = 2048,
	};

	if (!driver || !threads || threads > THREADS_MAX)
		return 2;
	run.iterations = (unspin_u32)atoi(arguments[3]);
	run.slots = aligned_alloc(driver->slot_alignment, driver->slot_bytes);
	if (!run.slots)
		return 3;
	driver->prepare(run.slots, 1);
	for (unsigned i = 0; i < UNSPIN_QUANTILES; i++)
		hold.quantile_loops[i] = 20;
	for (unsigned i = 0; i < threads; i++)
		jobs[i] = (struct job){.driver = driver, .run = &run, .thread = i};
	entries = run_jobs(jobs, threads, &violations);
	printf("%s: %llu entries, %llu violations, %llu lost\n", driver->name, entries, violations,
	       entries - driver->entries(run.slots, 1));
	return violations || entries != driver->entries(run.slots, 1) || driver->still_locked(run.slots, 1);
}
