/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * baselines.h - the locks that ours are measured beside, each once: X(NUMBER, name), with a header in baselines/. UNSPIN_HAS_CK: build.rs
 * has found Concurrency Kit's headers (libck-dev).
 */
#ifndef UNSPIN_BENCH_BASELINES_H
#define UNSPIN_BENCH_BASELINES_H

#include "driver.h"

#define BASELINES(X)                                                                                                   \
	X(0, glibc_mutex)                                                                                              \
	X(1, glibc_spinlock)                                                                                           \
	X(2, parking_lot)
#define BASELINES_OF_CK(X)                                                                                             \
	X(3, ck_fas)                                                                                                   \
	X(4, ck_ticket)                                                                                                \
	X(5, ck_mcs)
#define BASELINE_COUNT 6

/* By number; 0 where it is missing from this build. */
extern const struct driver *const baseline_table[BASELINE_COUNT];
/* Their names, those that are missing included. */
extern const char *const baseline_names[BASELINE_COUNT];

#endif
