/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rivals.h - the locks that ours are measured beside, each once: X(NUMBER, name), with a header in rivals/. UNSPIN_HAS_CK: build.rs
 * has found Concurrency Kit's headers (libck-dev).
 */
#ifndef UNSPIN_BENCH_RIVALS_H
#define UNSPIN_BENCH_RIVALS_H

#include "driver.h"

#define RIVALS(X)                                                                                                      \
	X(0, glibc_mutex)                                                                                              \
	X(1, glibc_spinlock)                                                                                           \
	X(2, parking_lot)
#define RIVALS_OF_CK(X)                                                                                                \
	X(3, ck_fas)                                                                                                   \
	X(4, ck_ticket)                                                                                                \
	X(5, ck_mcs)
#define RIVAL_COUNT 6

/* By number; 0 where it is missing from this build. */
extern const struct driver *const rival_table[RIVAL_COUNT];
/* Their names, those that are missing included. */
extern const char *const rival_names[RIVAL_COUNT];

#endif
