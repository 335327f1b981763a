/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mutex.c - unspin_mutex of unspin/locks.h: locks/blocking/adaptive_mutex.h, whose waiters sleep in a futex. */
#include <pthread.h>

#include "../../locks/blocking/adaptive_mutex.h"

unspin_u32 process_generation;

static void in_the_child(void)
{
	process_generation++;
}

/* Fails only without memory, at the program's start: then locks that others waited for at a fork are lost in the child. */
static __attribute__((constructor)) void notice_forks(void)
{
	pthread_atfork(0, 0, in_the_child);
}

#define LIBRARY_NAME mutex
#define LIBRARY_LOCK adaptive_mutex
#include "../functions.h"
