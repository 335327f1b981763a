/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unspin/locks.h - locks between the threads of a program that has more threads than CPUs. C11 and later; C++17 by
 * unspin/locks.hpp. Link with `pkg-config --cflags --libs unspin`.
 *
 * Each lock is a struct without pointers: it needs no memory of its own and no destroy, and may be freed while nobody
 * holds it or waits for it. Its contents are the library's. It begins unlocked as UNSPIN_..._INIT, or after
 * unspin_NAME_init(), which must be called before other threads see it. A lock that is held or waited for may not be
 * moved or copied. Structs with a line for each waiter are aligned to 64 bytes: allocate them with aligned_alloc().
 *
 * The functions of every lock, with NAME in the place of the lock's name:
 *
 * unspin_NAME_lock()      returns when the caller holds the lock. The caller must not hold it already. Never fails.
 * unspin_NAME_trylock()   returns whether the caller holds the lock now; does not wait. false to who holds it already.
 * unspin_NAME_unlock()    for the holder.
 * unspin_NAME_is_locked() whether somebody holds the lock (or, in those with a queue, waits for it); the answer may be out
 *                         of date when it returns, and says nothing about memory.
 *
 * lock() and a trylock() that succeeds acquire, unlock() releases, as in memory_order_acquire and memory_order_release.
 * What each lock promises about order, fork, signal handlers and dead threads: docs/libunspin.md, unspin_locks(7).
 */
#ifndef UNSPIN_LOCKS_H
#define UNSPIN_LOCKS_H

#include <stdbool.h>

#define UNSPIN_VERSION "0.1.0"

#ifdef __cplusplus
#define UNSPIN_ALIGNED(bytes) alignas(bytes)
#define UNSPIN_NOEXCEPT noexcept
extern "C" {
#else
#define UNSPIN_ALIGNED(bytes) _Alignas(bytes)
#define UNSPIN_NOEXCEPT
#endif
#define UNSPIN_API __attribute__((visibility("default")))

/* A lock's struct of `word_count` words of 32 bits, and its functions. */
#define UNSPIN_DECLARE_LOCK(name, word_count, alignment)                                                               \
	struct unspin_##name {                                                                                         \
		UNSPIN_ALIGNED(alignment) unsigned int words[word_count];                                              \
	};                                                                                                             \
	UNSPIN_API void unspin_##name##_init(struct unspin_##name *lock) UNSPIN_NOEXCEPT;                              \
	UNSPIN_API void unspin_##name##_lock(struct unspin_##name *lock) UNSPIN_NOEXCEPT;                              \
	UNSPIN_API bool unspin_##name##_trylock(struct unspin_##name *lock) UNSPIN_NOEXCEPT;                           \
	UNSPIN_API void unspin_##name##_unlock(struct unspin_##name *lock) UNSPIN_NOEXCEPT;                            \
	UNSPIN_API bool unspin_##name##_is_locked(const struct unspin_##name *lock) UNSPIN_NOEXCEPT;

/* Functions of a lock that readers share: inside are either readers or one that has called the functions above. */
#define UNSPIN_DECLARE_READERS(name)                                                                                   \
	UNSPIN_API void unspin_##name##_read_lock(struct unspin_##name *lock) UNSPIN_NOEXCEPT;                         \
	UNSPIN_API bool unspin_##name##_read_trylock(struct unspin_##name *lock) UNSPIN_NOEXCEPT;                      \
	UNSPIN_API void unspin_##name##_read_unlock(struct unspin_##name *lock) UNSPIN_NOEXCEPT;

/*
 * Spinlocks: for sections of a microsecond, with no more threads than CPUs. A waiter that spins for a thread that does
 * not run spends its time slice.
 */

/* Test-and-test-and-set: no order. */
UNSPIN_DECLARE_LOCK(test_and_test_and_set, 1, 4)
#define UNSPIN_TEST_AND_TEST_AND_SET_INIT {{0}}

/* First come, first served. */
UNSPIN_DECLARE_LOCK(ticket, 2, 4)
#define UNSPIN_TICKET_INIT {{0, 0}}

/* By ticket; a waiter that does not run is passed by the others after a while (Ouyang and Lange, VEE'13). */
UNSPIN_DECLARE_LOCK(preemptable_ticket, 4, 4)
#define UNSPIN_PREEMPTABLE_TICKET_INIT {{0, 0, 0, 16384}}

/* First come, first served, each waiter on a cache line of its own (Mellor-Crummey and Scott). */
UNSPIN_DECLARE_LOCK(mcs, 1056, 64)
#define UNSPIN_MCS_INIT {{0}}

/* Linux's queued spinlock. */
UNSPIN_DECLARE_LOCK(qspinlock, 1056, 64)
#define UNSPIN_QSPINLOCK_INIT {{0}}

/* A ticket lock whose waiters call sched_yield() after every 2,048 spins (Friebel and Biemueller 2008). */
UNSPIN_DECLARE_LOCK(helping, 3, 4)
#define UNSPIN_HELPING_INIT {{0, 0, 2048}}

/*
 * Locks that park: a waiter spins for a while, then sleeps in the kernel until it is woken. For programs with more threads
 * than CPUs.
 */

/*
 * The one to take: one waiter spins while the holder runs, the others sleep; all sleep while the holder was preempted on
 * their CPU. Newcomers pass, until a waiter has spun or slept for long.
 */
UNSPIN_DECLARE_LOCK(mutex, 2, 8)
#define UNSPIN_MUTEX_INIT {{0, 0}}

/* First come, first served. */
UNSPIN_DECLARE_LOCK(paravirtual_ticket, 68, 4)
#define UNSPIN_PARAVIRTUAL_TICKET_INIT {{0}}

/* As preemptable_ticket. unlock() wakes all that sleep. */
UNSPIN_DECLARE_LOCK(paravirtual_preemptable_ticket, 6, 4)
#define UNSPIN_PARAVIRTUAL_PREEMPTABLE_TICKET_INIT {{0, 0, 0, 16384, 0, 0}}

/* Linux's queued spinlock for guests: a queue, which newcomers may pass. */
UNSPIN_DECLARE_LOCK(paravirtual_qspinlock, 1056, 64)
#define UNSPIN_PARAVIRTUAL_QSPINLOCK_INIT {{0}}

/* Linux's mutex: one waiter spins, the others sleep in a queue, which newcomers may pass for a while. */
UNSPIN_DECLARE_LOCK(linux_mutex, 268, 16)
#define UNSPIN_LINUX_MUTEX_INIT {{0}}

/* Reader-writer locks. */

/* Linux's queued reader-writer lock: waiters spin, first come, first served. */
UNSPIN_DECLARE_LOCK(rwlock, 3, 4)
UNSPIN_DECLARE_READERS(rwlock)
#define UNSPIN_RWLOCK_INIT {{0, 0, 0}}

/* Linux's rwsem: waiters sleep, and get the lock in order. */
UNSPIN_DECLARE_LOCK(rwsem, 268, 16)
UNSPIN_DECLARE_READERS(rwsem)
#define UNSPIN_RWSEM_INIT {{0}}

/* The version of the library that runs, as UNSPIN_VERSION of its header. */
UNSPIN_API const char *unspin_version(void) UNSPIN_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
