/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * report.c - counts, in the file that UNSPIN_PRELOAD_REPORT names, which all processes of the program have mapped: they stay
 * however a process ends. Only calls that have waited come here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

/* Places that are looked at for a lock, from the one that its address gives. */
#define PLACES_TRIED 32u

struct unspin_preload_report *preload_report;
/* Path of the program, for call sites in it: the dynamic linker does not know it. */
static char program[UNSPIN_PRELOAD_MODULE_BYTES];

void preload_report_open(char **environment)
{
	static const char name[] = "UNSPIN_PRELOAD_REPORT=";
	const char *path = 0;
	struct unspin_preload_report *mapped;
	int before = errno, file;

	for (char **variable = environment; variable && *variable; variable++) {
		if (!strncmp(*variable, name, sizeof(name) - 1))
			path = *variable + sizeof(name) - 1;
	}
	if (!path || !*path)
		return;
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file >= 0) {
		mapped = mmap(0, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
		/* A shorter file would end the program later, at the access. */
		if (mapped != MAP_FAILED && mapped->magic == UNSPIN_PRELOAD_MAGIC) {
			if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
				program[0] = 0;
			__atomic_fetch_add(&mapped->processes, 1, __ATOMIC_RELAXED);
			preload_report = mapped;
		}
	}
	errno = before;
}

void preload_count_passed(enum unspin_preload_passed kind)
{
	if (preload_report)
		__atomic_fetch_add(&preload_report->passed[kind], 1, __ATOMIC_RELAXED);
}

/* The end of a path that is too long. */
static void copy_path(char *to, const char *path)
{
	size_t bytes = strlen(path), most = UNSPIN_PRELOAD_MODULE_BYTES - 1;

	if (bytes > most) {
		path += bytes - most;
		bytes = most;
	}
	memcpy(to, path, bytes);
}

/* Where a call site is. _dl_find_object() takes no lock and allocates nothing (glibc 2.35, "Dynamic Linker Introspection"). */
static void describe(struct unspin_preload_lock *lock, const void *site)
{
	struct dl_find_object object;

	lock->site = (unspin_u64)(unsigned long)site;
	if (!site || _dl_find_object((void *)(unsigned long)site, &object))
		return;
	/* l_addr and l_name of struct link_map, its first two members (<link.h>). */
	lock->site -= *(const unsigned long *)(const void *)object.dlfo_link_map;
	const char *name = ((const char *const *)(const void *)object.dlfo_link_map)[1];
	copy_path(lock->module, *name ? name : program);
}

/* The lock's place, claimed for it if it has none; 0: there is none. */
static struct unspin_preload_lock *place_of(enum unspin_preload_kind kind, const void *object, const void *site)
{
	unspin_u64 address = (unspin_u64)(unsigned long)object, process = (unspin_u64)getpid();
	unspin_u64 first = (address >> 3 ^ process) * 0x9e3779b97f4a7c15ull >> 40;

	for (unspin_u32 i = 0; i < PLACES_TRIED; i++) {
		struct unspin_preload_lock *lock = &preload_report->locks[(first + i) % UNSPIN_PRELOAD_LOCKS];
		unspin_u32 place = __atomic_load_n(&lock->place, __ATOMIC_ACQUIRE);

		if (place == UNSPIN_PRELOAD_FREE &&
		    __atomic_compare_exchange_n(&lock->place, &place, UNSPIN_PRELOAD_CLAIMED, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE)) {
			lock->address = address;
			lock->process = process;
			lock->kind = kind;
			describe(lock, site);
			__atomic_store_n(&lock->place, UNSPIN_PRELOAD_FILLED, __ATOMIC_RELEASE);
			return lock;
		}
		/* Who finds a place that is being filled in goes on: a lock may have two, which the reader adds up. */
		if (place == UNSPIN_PRELOAD_FILLED && lock->address == address && lock->process == process)
			return lock;
	}
	return 0;
}

void preload_count_wait(enum unspin_preload_kind kind, const void *object, const void *site,
			struct preload_thread before)
{
	struct unspin_preload_lock *lock = place_of(kind, object, site);

	if (!lock) {
		__atomic_fetch_add(&preload_report->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&lock->contended, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lock->parks, preload_self.blocks - before.blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lock->preempted, preload_self.stopped != before.stopped, __ATOMIC_RELAXED);
}
