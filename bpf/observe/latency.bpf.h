/* SPDX-License-Identifier: GPL-2.0-only */
/* latency.bpf.h - the bucket of a time in the histogram of unspin_vcpu_counters, computed in some 14 instructions. */
#ifndef UNSPIN_BPF_OBSERVE_LATENCY_H
#define UNSPIN_BPF_OBSERVE_LATENCY_H

#include "maps.bpf.h"

/* clang-format off */
#define EIGHT(n) n, n, n, n, n, n, n, n
#define SIXTY_FOUR(n) EIGHT(n), EIGHT(n), EIGHT(n), EIGHT(n), EIGHT(n), EIGHT(n), EIGHT(n), EIGHT(n)
/*
 * floor(log2(n)) for n from 1 to 255, and 0 for 0. In its own section, because user space overwrites .rodata with the
 * options.
 */
static const u8 log2_of[256] SEC(".rodata.log2") = {
	0, 0, 1, 1, 2, 2, 2, 2, EIGHT(3), EIGHT(4), EIGHT(4), EIGHT(5), EIGHT(5), EIGHT(5), EIGHT(5),
	SIXTY_FOUR(6), SIXTY_FOUR(7), SIXTY_FOUR(7),
};
/* clang-format on */

/* Bucket of `ns`: floor(log2(ns)), 0 for 0 and 1 ns; times that are too long go into the last bucket. */
static __always_inline u32 latency_bucket(u64 ns)
{
	u32 bucket = 0, low = ns;

	if (ns >> UNSPIN_LATENCY_BUCKETS)
		return UNSPIN_LATENCY_BUCKETS - 1;
	if (low >> 16) {
		low >>= 16;
		bucket = 16;
	}
	if (low >> 8) {
		low >>= 8;
		bucket += 8;
	}
	return bucket + log2_of[low & 255]; /* at most 16 + 8 + 7 = 31 */
}

#endif
