/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * thread_run_state.h - the run states of a process's threads, which bpf/threads/main.bpf.c publishes: one struct for each thread, in a
 * map that the process has mapped. Written at each switch of that thread, by the CPU on which it happens; read at any time. The
 * values may be late, and stay as they are when the program is unloaded.
 *
 * In the other direction a thread publishes its critical sections to steer's scheduler, as a vCPU does: in a struct unspin_pv_page
 * (abi/guest/pv_page.h) of the scheduler's map `thread_pages`, which its process has mapped. It gets one by prctl() with an option that
 * the kernel does not implement, so the call returns EINVAL; `acknowledged` shows whether it has the page. `critical` is raised before
 * a lock is requested and lowered after unlock; a thread that then finds `borrowed` set clears it and calls sched_yield(). A process
 * that can map the map can write all its pages, so these processes must trust one another. A page of a thread that has ended may
 * be taken by the next.
 */
#ifndef UNSPIN_ABI_BPF_THREAD_RUN_STATE_H
#define UNSPIN_ABI_BPF_THREAD_RUN_STATE_H

#include "../types.h"

/* Threads of all processes that one loaded program can publish. */
#define UNSPIN_THREADS_MAX 1024u

/* First argument of that prctl(); the second: number of the page, below UNSPIN_THREADS_MAX. */
#define UNSPIN_PRCTL_REGISTER_THREAD 0x554e0001u

enum unspin_run_state {
	UNSPIN_THREAD_RUNS = 0, /* or nothing is known */
	UNSPIN_THREAD_PREEMPTED = 1,
	UNSPIN_THREAD_BLOCKED = 2,
};

struct unspin_thread_run_state {
	unspin_u32 state;      /* enum unspin_run_state */
	unspin_u32 overloaded; /* 1: when it was given its CPU, another task could have run there */
	unspin_u32 cpu;	       /* on which it ran last */
	unspin_u32 switches;   /* away from a CPU, since it was registered */
	unspin_u64 reserved[6];
};
UNSPIN_ASSERT_SIZE(struct unspin_thread_run_state, 64);

#endif
