/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* table.h - every lock of unspin/locks.h by its name, for programs that test the installed library. Include it once. */
#ifndef UNSPIN_LIB_TESTS_TABLE_H
#define UNSPIN_LIB_TESTS_TABLE_H

#include "kind.h"

#define CALLS(lock_name, NAME)                                                                                         \
	static const struct unspin_##lock_name lock_name##_initial = UNSPIN_##NAME##_INIT;                             \
	static void lock_name##_init(union any *lock)                                                                  \
	{                                                                                                              \
		unspin_##lock_name##_init(&lock->lock_name);                                                           \
	}                                                                                                              \
	static void lock_name##_lock(union any *lock)                                                                  \
	{                                                                                                              \
		unspin_##lock_name##_lock(&lock->lock_name);                                                           \
	}                                                                                                              \
	static bool lock_name##_trylock(union any *lock)                                                               \
	{                                                                                                              \
		return unspin_##lock_name##_trylock(&lock->lock_name);                                                 \
	}                                                                                                              \
	static void lock_name##_unlock(union any *lock)                                                                \
	{                                                                                                              \
		unspin_##lock_name##_unlock(&lock->lock_name);                                                         \
	}                                                                                                              \
	static bool lock_name##_is_locked(union any *lock)                                                             \
	{                                                                                                              \
		return unspin_##lock_name##_is_locked(&lock->lock_name);                                               \
	}
#define READ_CALLS(lock_name, NAME)                                                                                    \
	static void lock_name##_read_lock(union any *lock)                                                             \
	{                                                                                                              \
		unspin_##lock_name##_read_lock(&lock->lock_name);                                                      \
	}                                                                                                              \
	static bool lock_name##_read_trylock(union any *lock)                                                          \
	{                                                                                                              \
		return unspin_##lock_name##_read_trylock(&lock->lock_name);                                            \
	}                                                                                                              \
	static void lock_name##_read_unlock(union any *lock)                                                           \
	{                                                                                                              \
		unspin_##lock_name##_read_unlock(&lock->lock_name);                                                    \
	}
PLAIN_LOCKS(CALLS)
READER_LOCKS(CALLS)
READER_LOCKS(READ_CALLS)

#define FIRST_FIELDS(lock_name)                                                                                        \
	#lock_name, sizeof(struct unspin_##lock_name), &lock_name##_initial, lock_name##_init, lock_name##_lock,       \
		lock_name##_trylock, lock_name##_unlock, lock_name##_is_locked
#define PLAIN_ROW(lock_name, NAME) {FIRST_FIELDS(lock_name), 0, 0, 0},
#define READER_ROW(lock_name, NAME)                                                                                    \
	{FIRST_FIELDS(lock_name), lock_name##_read_lock, lock_name##_read_trylock, lock_name##_read_unlock},

static const struct kind kinds[] = {PLAIN_LOCKS(PLAIN_ROW) READER_LOCKS(READER_ROW)};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The lock of that name; 0 if there is none. */
static inline const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < KINDS; i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	return 0;
}

#endif
