/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* linux_mutex.c - unspin_linux_mutex of unspin/locks.h: locks/mutex.h. Who sleeps spins on no node: nodes may share cache lines. */

#define PROCESS_PARKS
#define PLATFORM_NODE_ALIGNMENT 16
#include "../../locks/mutex.h"

/* locks/mutex.h would take a holder's second request for a lock that was handed over to it. */
static inline void refuse_holder(const struct mutex_lock *lock)
{
	if ((platform_load_relaxed(&lock->holder) & MUTEX_TASK_MASK) == platform_task() + 1)
		process_fail("a thread locks an unspin_linux_mutex that it holds already");
}

#define LIBRARY_NAME linux_mutex
#define LIBRARY_LOCK mutex
#define LIBRARY_OWNED
#define LIBRARY_REFUSE refuse_holder
#include "../functions.h"
