/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * functions.h - the library's functions of one lock. A source of lib/locks/ includes it after a header of locks/ and these:
 *
 * LIBRARY_NAME   the lock's name in the library
 * LIBRARY_LOCK   its name in locks/
 * LIBRARY_SHARES if readers share it
 * LIBRARY_OWNED  if only the thread that took it can free it
 * LIBRARY_REFUSE if given: called when the lock was not free, before the wait
 */
#ifndef UNSPIN_LIB_FUNCTIONS_H
#define UNSPIN_LIB_FUNCTIONS_H

#include "include/unspin/locks.h"

#define LIBRARY_JOIN_(a, b, c) a##b##c
#define LIBRARY_JOIN(a, b, c) LIBRARY_JOIN_(a, b, c)
/* The lock of locks/, its functions, and those of the library. */
#define LIBRARY_STRUCT LIBRARY_JOIN(, LIBRARY_LOCK, _lock)
#define LIBRARY_INNER(operation) LIBRARY_JOIN(, LIBRARY_LOCK, operation)
#define LIBRARY_OUTER(operation) LIBRARY_JOIN(unspin_, LIBRARY_NAME, operation)

typedef struct LIBRARY_OUTER() library_opaque;

_Static_assert(sizeof(library_opaque) == sizeof(struct LIBRARY_STRUCT), "the size in unspin/locks.h is wrong");
_Static_assert(_Alignof(library_opaque) == _Alignof(struct LIBRARY_STRUCT), "the alignment in unspin/locks.h is wrong");

static inline struct LIBRARY_STRUCT *library_inner(library_opaque *lock)
{
	return (struct LIBRARY_STRUCT *)(void *)lock;
}

/* The calling thread holds one more lock that only it can free, or one less. */
static inline void library_holds(int more)
{
#ifdef LIBRARY_OWNED
	process_self.holds += (unspin_u32)more;
#else
	(void)more;
#endif
}

void LIBRARY_OUTER(_init)(library_opaque *lock)
{
	LIBRARY_INNER(_init)(library_inner(lock));
}

static inline bool library_try(library_opaque *lock)
{
	if (!LIBRARY_INNER(_trylock)(library_inner(lock)))
		return 0;
	library_holds(1);
	return 1;
}

bool LIBRARY_OUTER(_trylock)(library_opaque *lock)
{
	return library_try(lock);
}

#ifdef LIBRARY_REFUSE
/* Apart from the function that callers call, which saves no registers then. */
static __attribute__((noinline)) void library_wait(library_opaque *lock)
{
	LIBRARY_REFUSE(library_inner(lock));
	LIBRARY_INNER(_lock)(library_inner(lock));
	library_holds(1);
}

void LIBRARY_OUTER(_lock)(library_opaque *lock)
{
	if (!library_try(lock))
		library_wait(lock);
}
#else
void LIBRARY_OUTER(_lock)(library_opaque *lock)
{
	LIBRARY_INNER(_lock)(library_inner(lock));
	library_holds(1);
}
#endif

void LIBRARY_OUTER(_unlock)(library_opaque *lock)
{
#ifdef LIBRARY_OWNED
	/* Who holds nothing frees nothing. */
	if (process_self.holds == 0)
		return;
#endif
	LIBRARY_INNER(_unlock)(library_inner(lock));
	library_holds(-1);
}

bool LIBRARY_OUTER(_is_locked)(const library_opaque *lock)
{
	return LIBRARY_INNER(_is_locked)((const struct LIBRARY_STRUCT *)(const void *)lock);
}

#ifdef LIBRARY_SHARES
void LIBRARY_OUTER(_read_lock)(library_opaque *lock)
{
	LIBRARY_INNER(_read_lock)(library_inner(lock));
}

bool LIBRARY_OUTER(_read_trylock)(library_opaque *lock)
{
	return LIBRARY_INNER(_read_trylock)(library_inner(lock));
}

void LIBRARY_OUTER(_read_unlock)(library_opaque *lock)
{
	LIBRARY_INNER(_read_unlock)(library_inner(lock));
}
#endif

#endif
