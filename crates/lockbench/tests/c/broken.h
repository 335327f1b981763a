/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* broken.h - no lock at all: what ThreadSanitizer must complain about. */
#ifndef UNSPIN_BENCH_TESTS_BROKEN_H
#define UNSPIN_BENCH_TESTS_BROKEN_H

struct broken_lock {
	struct platform_word unused;
};

static inline void broken_init(struct broken_lock *lock)
{
	platform_init(&lock->unused, 0);
}

static inline void broken_lock(struct broken_lock *lock)
{
	(void)lock;
}

static inline _Bool broken_trylock(struct broken_lock *lock)
{
	(void)lock;
	return 1;
}

static inline _Bool broken_is_locked(const struct broken_lock *lock)
{
	(void)lock;
	return 1;
}

static inline void broken_unlock(struct broken_lock *lock)
{
	(void)lock;
}

#endif
