/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * rcu.h - read-copy update: readers never wait; a writer waits until all readers that may have seen the old data have
 * left.
 *
 * Source: Desnoyers et al., "User-level implementations of read-copy update" (2012), the flavour with memory barriers.
 * (In Linux's kernel readers need none, because a context switch ends every reader.) A reader stores the epoch at which
 * it began; synchronize begins a new epoch and waits for each reader of an older one. Readers may nest. RCU is not a
 * lock: writers must exclude each other by other means. Limits: 2^30 calls of synchronize during one reader; readers
 * whose number is PLATFORM_WAITERS_MAX or more are counted together, and synchronize waits until none of them is
 * inside, including those that began after the call.
 */
#ifndef UNSPIN_LOCKS_RCU_H
#define UNSPIN_LOCKS_RCU_H

#include "../platform/contract.h"

struct rcu_reader {
	struct platform_word epoch __attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* odd; 0: not reading */
	struct platform_word depth; /* of nesting; accessed by the reader only */
};

struct rcu {
	struct platform_word epoch;  /* odd, so never 0 */
	struct platform_word others; /* readers inside whose number is too great */
	struct rcu_reader readers[PLATFORM_WAITERS_MAX];
};

/* Initialises it, before it is shared. */
static inline void rcu_init(struct rcu *rcu)
{
	platform_init(&rcu->epoch, 1);
	platform_init(&rcu->others, 0);
	for (unspin_u32 i = 0; i < PLATFORM_WAITERS_MAX; i++) {
		platform_init(&rcu->readers[i].epoch, 0);
		platform_init(&rcu->readers[i].depth, 0);
	}
}

/* Begins a reader: what the caller loads from now on stays valid until its rcu_read_unlock(). Never waits. */
static inline void rcu_read_lock(struct rcu *rcu)
{
	unspin_u32 waiter = platform_waiter(), depth;
	struct rcu_reader *reader;

	if (waiter >= PLATFORM_WAITERS_MAX) {
		platform_fetch_add_ordered(&rcu->others, 1);
		return;
	}
	reader = &rcu->readers[waiter];
	depth = platform_load_relaxed(&reader->depth);
	platform_store_relaxed(&reader->depth, depth + 1);
	if (depth)
		return;
	platform_store_relaxed(&reader->epoch, platform_load_relaxed(&rcu->epoch));
	/* Either synchronize sees this reader, or the reader sees all that was changed before synchronize. */
	platform_fence();
}

/* Ends a reader, under the waiter number of its rcu_read_lock(). */
static inline void rcu_read_unlock(struct rcu *rcu)
{
	unspin_u32 waiter = platform_waiter(), depth;
	struct rcu_reader *reader;

	if (waiter >= PLATFORM_WAITERS_MAX) {
		platform_fetch_add_release(&rcu->others, -1u);
		return;
	}
	reader = &rcu->readers[waiter];
	depth = platform_load_relaxed(&reader->depth) - 1;
	platform_store_relaxed(&reader->depth, depth);
	if (depth == 0)
		platform_store_release(&reader->epoch, 0);
}

/* Returns when all readers that began before the call have ended. A reader must not call it. */
static inline void rcu_synchronize(struct rcu *rcu)
{
	unspin_u32 now = platform_fetch_add_ordered(&rcu->epoch, 2) + 2, seen;

	for (unspin_u32 i = 0; i < PLATFORM_WAITERS_MAX; i++) {
		seen = platform_load_acquire(&rcu->readers[i].epoch);
		while (seen != 0 && (int)(seen - now) < 0)
			seen = platform_wait_while(&rcu->readers[i].epoch, seen, PLATFORM_FOREVER);
	}
	platform_wait_until(&rcu->others, 0);
}

#endif
