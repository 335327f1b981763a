/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * rcu.h - readers that never wait: a writer waits until all readers that may have seen the old are gone.
 *
 * Source: Desnoyers et al., "User-level implementations of read-copy update" (2012), the flavour with memory barriers; Linux
 * has it for free where a context switch ends every reader. A reader notes the epoch at which it began; synchronize begins a
 * new one and waits for each reader of an older. Readers may nest. It is no lock: writers exclude each other by other means.
 * Limits: 2^30 calls of synchronize during one reader; readers whose number is PLATFORM_WAITERS_MAX or more are counted together,
 * and synchronize waits until none of them is inside, however new.
 */
#ifndef UNSPIN_LOCKS_RCU_H
#define UNSPIN_LOCKS_RCU_H

#include "../platform/contract.h"

struct rcu_reader {
	struct platform_word epoch __attribute__((aligned(PLATFORM_NODE_ALIGNMENT))); /* odd; 0: not reading */
	struct platform_word depth;						      /* of nesting; the reader's own */
};

struct rcu {
	struct platform_word epoch;  /* odd, so never 0 */
	struct platform_word others; /* readers without a number */
	struct rcu_reader readers[PLATFORM_WAITERS_MAX];
};

/* Before it is shared. */
static inline void rcu_init(struct rcu *rcu)
{
	platform_init(&rcu->epoch, 1);
	platform_init(&rcu->others, 0);
	for (unspin_u32 i = 0; i < PLATFORM_WAITERS_MAX; i++) {
		platform_init(&rcu->readers[i].epoch, 0);
		platform_init(&rcu->readers[i].depth, 0);
	}
}

/* What the caller loads from now on stays until its rcu_read_unlock(). Never waits. */
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
	/* Either synchronize sees us, or we see all that was changed before it. */
	platform_fence();
}

/* As the waiter that it was at rcu_read_lock(). */
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

/* Returns when all readers are gone that began before the call. Not by a reader. */
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
