/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * wait_queue.h - the tasks that sleep at a blocking lock, in FIFO order: a list in the lock, protected by a spinlock
 * (the guard).
 *
 * As wait_list and wait_lock of Linux (kernel/locking/mutex.c, rwsem.c). Nodes are indexed by place (place.h), links
 * are places plus 1. Functions marked "guarded" are called between wait_queue_guard() and wait_queue_release(), where
 * no task may sleep.
 */
#ifndef UNSPIN_LOCKS_WAIT_QUEUE_H
#define UNSPIN_LOCKS_WAIT_QUEUE_H

#include "place.h"
#include "waiting_strategy.h"

struct wait_node {
	struct platform_word asleep __attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* 1: wakes when it becomes 0 */
	struct platform_word next;
	struct platform_word task; /* number of the waiter here */
	struct platform_word kind; /* set by the lock: reader or writer */
};

struct wait_queue {
	struct platform_word guard;
	struct platform_word shared; /* of place_take() */
	struct platform_word first, last;
	struct wait_node nodes[PLACES];
};

static inline void wait_queue_init(struct wait_queue *queue)
{
	platform_init(&queue->guard, 0);
	platform_init(&queue->shared, 0);
	platform_init(&queue->first, 0);
	platform_init(&queue->last, 0);
	for (unspin_u32 i = 0; i < PLACES; i++) {
		platform_init(&queue->nodes[i].asleep, 0);
		platform_init(&queue->nodes[i].next, 0);
		platform_init(&queue->nodes[i].task, 0);
		platform_init(&queue->nodes[i].kind, 0);
	}
}

/*
 * Guarded sections are short: after this many spins (claim O05) the holder of the guard is taken for descheduled, and
 * others run.
 */
#define WAIT_QUEUE_GUARD_SPINS 2048u

static inline void wait_queue_guard(struct wait_queue *queue)
{
	while (platform_exchange_acquire(&queue->guard, 1) != 0) {
		if (platform_wait_while(&queue->guard, 1, WAIT_QUEUE_GUARD_SPINS) != 0)
			platform_help();
	}
}

static inline void wait_queue_release(struct wait_queue *queue)
{
	platform_store_release(&queue->guard, 0);
}

/* Guarded: the place of the first task, or PLACES if none waits. */
static inline unspin_u32 wait_queue_first(const struct wait_queue *queue)
{
	unspin_u32 first = platform_load_relaxed(&queue->first);

	return first ? first - 1 : PLACES;
}

/* Guarded: appends a task, with its place. The task then waits on its node's `asleep`. */
static inline void wait_queue_add(struct wait_queue *queue, unspin_u32 place, unspin_u32 task, unspin_u32 kind)
{
	struct wait_node *node = &queue->nodes[place];
	unspin_u32 last = platform_load_relaxed(&queue->last);

	platform_store_relaxed(&node->next, 0);
	platform_store_relaxed(&node->task, task);
	platform_store_relaxed(&node->kind, kind);
	platform_store_relaxed(&node->asleep, 1);
	platform_store_relaxed(last ? &queue->nodes[last - 1].next : &queue->first, place + 1);
	platform_store_relaxed(&queue->last, place + 1);
}

/* Guarded: removes the waiter at `place`, at any position in the list. */
static inline void wait_queue_remove(struct wait_queue *queue, unspin_u32 place)
{
	unspin_u32 before = 0, at = platform_load_relaxed(&queue->first), next;

	while (at != place + 1) {
		before = at;
		at = platform_load_relaxed(&queue->nodes[at - 1].next);
	}
	next = platform_load_relaxed(&queue->nodes[place].next);
	platform_store_relaxed(before ? &queue->nodes[before - 1].next : &queue->first, next);
	if (next == 0)
		platform_store_relaxed(&queue->last, before);
}

/*
 * Tasks to wake after the guard is released: a woken task may preempt the waker, and would find the queue guarded.
 */
struct wait_queue_granted {
	unspin_u64 tasks; /* bit n: task n */
};

/*
 * Guarded: ends the wait of the waiter at `place`, which then reads the lock's word again. The caller wakes to_wake
 * later.
 */
static inline void wait_queue_grant(struct wait_queue *queue, unspin_u32 place, struct wait_queue_granted *to_wake)
{
	struct wait_node *node = &queue->nodes[place];
	unspin_u32 task = platform_load_relaxed(&node->task);

	/* Ordered: a waiter that sees this store sees what the caller changed before. */
	platform_exchange_ordered(&node->asleep, 0);
	if (task < PLATFORM_WAITERS_MAX)
		to_wake->tasks |= 1ull << task;
	else
		platform_wake(task);
}

/* Not guarded: wakes the granted tasks. For a task that has seen its grant already this is a spurious wake-up. */
static inline void wait_queue_wake(struct wait_queue_granted to_wake)
{
	for (; to_wake.tasks; to_wake.tasks &= to_wake.tasks - 1)
		platform_wake((unspin_u32)__builtin_ctzll(to_wake.tasks));
}

#endif
