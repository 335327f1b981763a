/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * report.h - what lib/preload counts in a program, in a file that `unspin preload` has made and the program has mapped. All
 * processes of the program add to it at any time; whoever reads it while they run sees counts that are a little late.
 */
#ifndef UNSPIN_ABI_PRELOAD_REPORT_H
#define UNSPIN_ABI_PRELOAD_REPORT_H

#include "../types.h"

/* First word of the file, which the library checks and `unspin preload` writes: "unspinP1", the format's number last. */
#define UNSPIN_PRELOAD_MAGIC 0x31506e6970736e75ull
/* Places for locks; what finds none is counted in `dropped`. */
#define UNSPIN_PRELOAD_LOCKS 1024u
#define UNSPIN_PRELOAD_MODULE_BYTES 184u

enum unspin_preload_kind {
	UNSPIN_PRELOAD_MUTEX = 0,
	UNSPIN_PRELOAD_RECURSIVE = 1,
	UNSPIN_PRELOAD_ERROR_CHECKING = 2,
	UNSPIN_PRELOAD_ADAPTIVE = 3,
	UNSPIN_PRELOAD_CONDITION = 4,
	UNSPIN_PRELOAD_RWLOCK = 5,
	UNSPIN_PRELOAD_SPINLOCK = 6,
};

/* What is left to libc: so many were initialised. */
enum unspin_preload_passed {
	UNSPIN_PRELOAD_PASSED_ROBUST = 0,
	UNSPIN_PRELOAD_PASSED_PRIORITY = 1, /* priority inheritance or protection */
	UNSPIN_PRELOAD_PASSED_SHARED_MUTEX = 2,
	UNSPIN_PRELOAD_PASSED_SHARED_CONDITION = 3,
	UNSPIN_PRELOAD_PASSED_SHARED_RWLOCK = 4,
	UNSPIN_PRELOAD_PASSED_COUNT = 5,
};

enum unspin_preload_place {
	UNSPIN_PRELOAD_FREE = 0,
	UNSPIN_PRELOAD_CLAIMED = 1, /* being filled in */
	UNSPIN_PRELOAD_FILLED = 2,
};

/* A lock for which a thread has waited. */
struct unspin_preload_lock {
	unspin_u32 place; /* enum unspin_preload_place */
	unspin_u32 kind;  /* enum unspin_preload_kind */
	unspin_u64 address;
	unspin_u64 site;      /* of the first call that waited: offset in `module` of where it returns to */
	unspin_u64 contended; /* calls that waited */
	unspin_u64 parks;     /* sleeps in the kernel */
	unspin_u64 preempted; /* waiters that saw the holder preempted, or were told so */
	unspin_u64 process;   /* number of its process */
	unspin_u64 reserved[2];
	char module
		[UNSPIN_PRELOAD_MODULE_BYTES]; /* path of the program or library that made the call; the end of a long one */
};
UNSPIN_ASSERT_SIZE(struct unspin_preload_lock, 256);

struct unspin_preload_report {
	unspin_u64 magic;
	unspin_u64 processes; /* that have loaded the library, forked ones included */
	unspin_u64 dropped;   /* waits for locks that found no place */
	unspin_u64 passed[UNSPIN_PRELOAD_PASSED_COUNT];
	unspin_u64 reserved[24];
	struct unspin_preload_lock locks[UNSPIN_PRELOAD_LOCKS];
};
UNSPIN_ASSERT_SIZE(struct unspin_preload_report, 256 + 256 * UNSPIN_PRELOAD_LOCKS);

#endif
