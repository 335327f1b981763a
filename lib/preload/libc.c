/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libc.c - libc's own functions, by their names behind this library. */
#include <dlfcn.h>

#include "common.h"

struct preload_libc preload_libc_table;

/* A name with a version where libc has more than one: the version of x86-64, elsewhere there is only the default. */
static void *find(const char *name, const char *version)
{
	void *found = version ? dlvsym(RTLD_NEXT, name, version) : 0;

	if (!found)
		found = dlsym(RTLD_NEXT, name);
	if (!found)
		preload_fail("the program's libc lacks a function of pthread: it is not glibc 2.30 or later");
	return found;
}

/* Threads that call it at the same time find, and store, the same. */
void preload_libc_find(void)
{
#define FIND(name, version, parameters)                                                                                \
	{                                                                                                              \
		void *found = find(#name, version);                                                                    \
		__atomic_store_n((void **)(void *)&preload_libc_table.name, found, __ATOMIC_RELEASE);                  \
	}
	PRELOAD_LIBC(FIND)
#undef FIND
}
