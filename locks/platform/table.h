/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * table.h - the table in which threads that share locks see which of them are parked and which do not run.
 *
 * A program has one platform_table for each group of threads. A thread joins it under its number, takes locks, and
 * leaves. Where a thread runs is known either by restartable sequences (rseq(2)): the kernel writes the thread's CPU
 * into its seat, where its rseq area is registered in place of libc's, so that the area outlives the thread; or by
 * `page`, which a BPF program at sched_switch writes (bpf/threads/).
 */
#ifndef UNSPIN_LOCKS_THREADS_TABLE_H
#define UNSPIN_LOCKS_THREADS_TABLE_H

#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../abi/bpf/thread_run_state.h"

/* Of FUTEX_WAKE: as many as there are. */
#define PLATFORM_WAKE_ALL 0x7fffffff

/* Values of a seat's permit. */
#define PLATFORM_PERMIT_NONE 0u
#define PLATFORM_PERMIT_GIVEN 1u /* kicked: the next park ends at once */
#define PLATFORM_PERMIT_ASKED 2u /* parked */

/* The source of a table's run states. */
enum platform_run_states {
	PLATFORM_RUN_STATES_NONE = 0, /* none: every question is answered with 0 */
	PLATFORM_RUN_STATES_RSEQ = 1,
	PLATFORM_RUN_STATES_PAGE = 2,
};

/*
 * struct rseq of the kernel's ABI (include/uapi/linux/rseq.h): cpu_id at byte 4; slice_ctrl (Linux 7.0) at byte 28: one
 * byte `request`, one byte `granted`. The kernel writes cpu_id when the thread returns to user mode on another CPU.
 */
#define PLATFORM_RSEQ_BYTES 64u
#define PLATFORM_RSEQ_CPU 4u
#define PLATFORM_RSEQ_REQUEST 28u
#define PLATFORM_RSEQ_GRANTED 29u
#define PLATFORM_NO_CPU 0xffffffffu

struct platform_seat {
	unsigned char rseq[PLATFORM_RSEQ_BYTES] __attribute__((aligned(64)));
	struct platform_word permit __attribute__((aligned(64)));
	struct platform_word joined;	/* 1 from join to leave */
	struct platform_word has_rseq;	/* the kernel writes to `rseq` */
	struct platform_word has_slice; /* time-slice extension was granted to this thread (PR_RSEQ_SLICE_EXTENSION) */
	struct platform_word parks;	/* number of waits in the kernel, for tests and reports */
};

/* Initialised to all zero: no thread has joined, and there are no run states. */
struct platform_table {
	struct platform_seat seats[PLATFORM_WAITERS_MAX];
	/*
	 * By number, if run_states is PLATFORM_RUN_STATES_PAGE. Others write it at any time; each question reads it
	 * once.
	 */
	const struct unspin_thread_run_state *page;
	struct platform_word run_states;  /* enum platform_run_states */
	struct platform_word seats_used;  /* greatest number that ever joined, plus 1 */
	struct platform_word wants_slice; /* 1: threads that join ask for time-slice extension */
};

/* Values that are missing in older kernel headers (include/uapi/linux/prctl.h, Linux 7.2; auxvec.h, Linux 6.3). */
#define PLATFORM_PR_RSEQ_SLICE_EXTENSION 79
#define PLATFORM_PR_RSEQ_SLICE_EXTENSION_SET 2
#define PLATFORM_PR_RSEQ_SLICE_EXT_ENABLE 1
#define PLATFORM_SYS_RSEQ_SLICE_YIELD 471
#define PLATFORM_AT_RSEQ_FEATURE_SIZE 27
#define PLATFORM_RSEQ_FIRST_BYTES 32u /* size of the first version, with which libc registers */

/* The rseq area that libc has registered for the calling thread; 0 if none (glibc before 2.35, or disabled). */
static inline void *platform_libc_rseq(void)
{
	return __rseq_size ? (char *)__builtin_thread_pointer() + __rseq_offset : 0;
}

/*
 * Bytes to register: the size that the kernel reports, since it offers time-slice extension only to areas of that size.
 */
static inline unspin_u32 platform_rseq_bytes(void)
{
	unsigned long features = getauxval(PLATFORM_AT_RSEQ_FEATURE_SIZE);

	return features > PLATFORM_RSEQ_FIRST_BYTES && features <= PLATFORM_RSEQ_BYTES ? (unspin_u32)features
										       : PLATFORM_RSEQ_FIRST_BYTES;
}

/*
 * Registers the seat's rseq area in place of libc's, for the calling thread; does nothing without rseq. Meanwhile libc
 * asks the kernel for the thread's CPU.
 */
static inline void platform_seat_register(struct platform_seat *seat, _Bool wants_slice)
{
	void *libc = platform_libc_rseq();
	long refused;

	if (libc && syscall(SYS_rseq, libc, PLATFORM_RSEQ_FIRST_BYTES, RSEQ_FLAG_UNREGISTER, RSEQ_SIG))
		return;
	refused = syscall(SYS_rseq, seat->rseq, platform_rseq_bytes(), 0, RSEQ_SIG);
	if (refused && libc)
		syscall(SYS_rseq, libc, PLATFORM_RSEQ_FIRST_BYTES, 0, RSEQ_SIG);
	if (refused)
		return;
	platform_store_release(&seat->has_rseq, 1);
	if (wants_slice && !prctl(PLATFORM_PR_RSEQ_SLICE_EXTENSION, PLATFORM_PR_RSEQ_SLICE_EXTENSION_SET,
				  PLATFORM_PR_RSEQ_SLICE_EXT_ENABLE, 0, 0))
		platform_store_release(&seat->has_slice, 1);
}

/* Registers libc's area again: the kernel must not write to the seat after the table is freed. */
static inline void platform_seat_unregister(struct platform_seat *seat)
{
	void *libc = platform_libc_rseq();

	if (!platform_load_relaxed(&seat->has_rseq))
		return;
	platform_store_relaxed(&seat->has_rseq, 0);
	platform_store_relaxed(&seat->has_slice, 0);
	syscall(SYS_rseq, seat->rseq, platform_rseq_bytes(), RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
	if (libc)
		syscall(SYS_rseq, libc, PLATFORM_RSEQ_FIRST_BYTES, 0, RSEQ_SIG);
}

/* The CPU on which the seat's thread last returned from the kernel; PLATFORM_NO_CPU if not known. */
static inline unspin_u32 platform_seat_cpu(const struct platform_seat *seat)
{
	if (!platform_load_relaxed(&seat->has_rseq))
		return PLATFORM_NO_CPU;
	/* In bounds and aligned: `rseq` is 64 bytes on a boundary of 64. */
	return __atomic_load_n((const unspin_u32 *)(const void *)(seat->rseq + PLATFORM_RSEQ_CPU), __ATOMIC_RELAXED);
}

/* Whether the seat's thread is parked in the kernel, or about to be. */
static inline _Bool platform_seat_parked(const struct platform_seat *seat)
{
	return platform_load_relaxed(&seat->permit) == PLATFORM_PERMIT_ASKED;
}

/*
 * Waits for a kick as platform_park() says, by one futex wait at most. EINTR, EAGAIN and other errors of futex(2) are
 * returns without cause, after which the caller reads the word again.
 */
static inline void platform_seat_park(struct platform_seat *seat, const struct platform_word *word, unspin_u32 value)
{
	if (platform_exchange_ordered(&seat->permit, PLATFORM_PERMIT_NONE) == PLATFORM_PERMIT_GIVEN)
		return;
	if (platform_load_acquire(word) != value)
		return;
	if (platform_compare_exchange_ordered(&seat->permit, PLATFORM_PERMIT_NONE, PLATFORM_PERMIT_ASKED) ==
	    PLATFORM_PERMIT_NONE) {
		platform_store_relaxed(&seat->parks, platform_load_relaxed(&seat->parks) + 1);
		syscall(SYS_futex, &seat->permit.value, FUTEX_WAIT_PRIVATE, PLATFORM_PERMIT_ASKED, 0, 0, 0);
	}
	platform_exchange_ordered(&seat->permit, PLATFORM_PERMIT_NONE);
}

/* Kicks the seat's thread: sets its permit and, if it waits in the kernel, wakes it. */
static inline void platform_seat_kick(struct platform_seat *seat)
{
	if (platform_exchange_ordered(&seat->permit, PLATFORM_PERMIT_GIVEN) == PLATFORM_PERMIT_ASKED)
		syscall(SYS_futex, &seat->permit.value, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

#endif
