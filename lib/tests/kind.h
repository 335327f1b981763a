/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* kind.h - the functions of any lock of unspin/locks.h, for programs that test the installed library. */
#ifndef UNSPIN_LIB_TESTS_KIND_H
#define UNSPIN_LIB_TESTS_KIND_H

#include <stddef.h>
#include <string.h>

#include <unspin/locks.h>

/* X(name, NAME) for locks without and with readers. */
#define PLAIN_LOCKS(X)                                                                                                 \
	X(test_and_test_and_set, TEST_AND_TEST_AND_SET)                                                                \
	X(ticket, TICKET)                                                                                              \
	X(preemptable_ticket, PREEMPTABLE_TICKET)                                                                      \
	X(mcs, MCS)                                                                                                    \
	X(qspinlock, QSPINLOCK)                                                                                        \
	X(helping, HELPING)                                                                                            \
	X(mutex, MUTEX)                                                                                                \
	X(paravirtual_ticket, PARAVIRTUAL_TICKET)                                                                      \
	X(paravirtual_preemptable_ticket, PARAVIRTUAL_PREEMPTABLE_TICKET)                                              \
	X(paravirtual_qspinlock, PARAVIRTUAL_QSPINLOCK)                                                                \
	X(linux_mutex, LINUX_MUTEX)
#define READER_LOCKS(X)                                                                                                \
	X(rwlock, RWLOCK)                                                                                              \
	X(rwsem, RWSEM)

#define MEMBER(name, NAME) struct unspin_##name name;
/* Storage for a lock of any kind. */
union any {
	PLAIN_LOCKS(MEMBER) READER_LOCKS(MEMBER)
};

struct kind {
	const char *name;
	size_t bytes;
	const void *initial; /* `bytes` of them: the constant for a free lock */
	void (*init)(union any *lock);
	void (*lock)(union any *lock);
	bool (*trylock)(union any *lock);
	void (*unlock)(union any *lock);
	bool (*is_locked)(union any *lock);
	/* 0 in locks without readers. */
	void (*read_lock)(union any *lock);
	bool (*read_trylock)(union any *lock);
	void (*read_unlock)(union any *lock);
};

#endif
