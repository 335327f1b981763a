/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * watch.h - what bpf/watch/main.bpf.c and crates/agent share: the counters that are kept for each vCPU without an event.
 *
 * A counter that this kernel cannot give is UNSPIN_UNKNOWN.
 */
#ifndef UNSPIN_ABI_BPF_WATCH_H
#define UNSPIN_ABI_BPF_WATCH_H

#include "events.h"

/* Counters of one vCPU's thread, or sums of threads of one VM. All of them only grow. Times are nanoseconds. */
struct unspin_watch_counters {
	unspin_u64 run_ns; /* on a CPU, guest and KVM together: the kernel's se.sum_exec_runtime, up to the last tick */
	unspin_u64
		wait_ns; /* runnable without a CPU: the kernel's sched_info.run_delay, up to the last wait that ended */
	unspin_u64 halted_ns;	/* from a HLT until the guest went on, without waits for a CPU */
	unspin_u64 guest_ns;	/* inside the guest */
	unspin_u64 spin_ns;	/* of it in spin loops that use PAUSE (policy/auto/useful_time.h) */
	unspin_u64 handling_ns; /* on a CPU, in KVM, for pause-loop exits: wasted like spin_ns, but outside the guest */
	unspin_u64 exits;	/* all */
	unspin_u64 ple_exits;	/* exit code 0x77 (AMD), basic exit reason 40 (Intel) */
	unspin_u64 ple_exits_user; /* of them with the guest in user mode; 0 on Intel, which regards the kernel only */
	unspin_u64 yields_tried;   /* calls of yield_to() for a pause-loop exit */
	unspin_u64 yields_succeeded; /* of them that returned above 0 */
	unspin_u64 slices_lost; /* times it lost its CPU while it spun, or gave it away but not by a directed yield */
};
UNSPIN_ASSERT_SIZE(struct unspin_watch_counters, 96);

/* One vCPU's thread, as the program of the iterator writes it. */
struct unspin_watch_record {
	unspin_u64 vm;		    /* number of its VM, from 1, in order of appearance; numbers may be left out */
	unspin_u64 kvm;		    /* tells VMs of one process apart: the key of the map `vms` */
	unspin_u64 since_ns;	    /* when it was first seen; CLOCK_MONOTONIC */
	unspin_u64 halted_since_ns; /* when the halt that goes on began; 0: none does */
	unspin_u32 process;
	unspin_u32 thread;
	unspin_u32 vcpu; /* KVM's number */
	unspin_u32 reserved;
	struct unspin_watch_counters counters;
};
UNSPIN_ASSERT_SIZE(struct unspin_watch_record, 48 + sizeof(struct unspin_watch_counters));

/* What is kept of a VM beside its threads' counters: those of threads that have ended, or serve another VM now. */
struct unspin_watch_vm {
	unspin_u64 number;
	struct unspin_watch_counters ended;
	unspin_u64 places[33]; /* struct unspin_spin_places, policy/classify/spin_places.h */
};
UNSPIN_ASSERT_SIZE(struct unspin_watch_vm, 104 + 33 * 8);

/* Kept once. */
struct unspin_watch_globals {
	unspin_u64 vms;	       /* numbers given so far */
	unspin_u64 generation; /* VMs destroyed so far */
	unspin_u64 unseen;     /* exits of threads or VMs for which the kernel had no memory: they are in no counter */
};
UNSPIN_ASSERT_SIZE(struct unspin_watch_globals, 24);

#endif
