/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * wait_queue.h - tasks that sleep at a blocking lock, first come first: a list in the lock, under a small lock of its own.
 *
 * As Linux's wait_list and wait_lock (kernel/locking/mutex.c, rwsem.c). Nodes are those of place.h, links are places plus 1. The
 * calls marked "guarded" are made between wait_queue_guard() and wait_queue_release(), where no task sleeps.
 */
#ifndef UNSPIN_LOCKS_WAIT_QUEUE_H
#define UNSPIN_LOCKS_WAIT_QUEUE_H

#include "place.h"
#include "waiting_strategy.h"

struct wait_node {
	struct platform_word asleep __attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* 1: wakes when it becomes 0 */
	struct platform_word next;
	struct platform_word task; /* number of the waiter here */
	struct platform_word kind; /* the lock's: a reader or a writer */
};

struct wait_queue {
	struct platform_word guard;
	struct platform_word shared; /* place.h */
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

/* Its sections are short; one that lasts this long (2,048 spins, claim O05) has lost its CPU, so others are let run. */
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

/* Guarded: the place of the first, or PLACES when none waits. */
static inline unspin_u32 wait_queue_first(const struct wait_queue *queue)
{
	unspin_u32 first = platform_load_relaxed(&queue->first);

	return first ? first - 1 : PLACES;
}

/* Guarded: a task waits at its place, last. It sleeps when it next waits at its node. */
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

/* Guarded: the waiter at `place` leaves, wherever it stands. */
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

/* Waiters to be woken once the guard is released: a woken task may take the waker's CPU, and must not find it guarded. */
struct wait_queue_granted {
	unspin_u64 tasks; /* a bit each */
};

/* Guarded: the waiter at `place` is granted: it reads the lock's word again. */
static inline void wait_queue_grant(struct wait_queue *queue, unspin_u32 place, struct wait_queue_granted *to_wake)
{
	struct wait_node *node = &queue->nodes[place];
	unspin_u32 task = platform_load_relaxed(&node->task);

	/* Ordered: what we changed before is seen by a waiter that sees this. */
	platform_exchange_ordered(&node->asleep, 0);
	if (task < PLATFORM_WAITERS_MAX)
		to_wake->tasks |= 1ull << task;
	else
		platform_wake(task);
}

/* Not guarded: wakes those that were granted. One may have seen it already: then this is a wake-up without cause. */
static inline void wait_queue_wake(struct wait_queue_granted to_wake)
{
	for (; to_wake.tasks; to_wake.tasks &= to_wake.tasks - 1)
		platform_wake((unspin_u32)__builtin_ctzll(to_wake.tasks));
}

#endif
