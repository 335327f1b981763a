/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * events.h - the one schema of events and counters: BPF programs, the lab and the guest's ground truth use it.
 *
 * An event is 48 bytes. `vm` and `vcpu` name the vCPU that the event is about (UNSPIN_NO_VM: none); what the three
 * arguments mean is said at each kind. Times are nanoseconds of CLOCK_MONOTONIC on a host, simulated ones in the lab.
 */
#ifndef UNSPIN_ABI_BPF_EVENTS_H
#define UNSPIN_ABI_BPF_EVENTS_H

#include "../types.h"

#define UNSPIN_EVENTS_VERSION 2u
#define UNSPIN_NO_VM 0xffffffffu
#define UNSPIN_NO_VCPU 0xffffu
#define UNSPIN_UNKNOWN 0xffffffffffffffffull /* an argument that is unknown on this host */
#define UNSPIN_UNKNOWN_HALF 0xffffffffu	     /* the same for half an argument */

/* Where the guest was when it was left: kernel mode is CPL 0, 1 or 2. */
enum unspin_guest_mode {
	UNSPIN_MODE_UNKNOWN = 0,
	UNSPIN_MODE_USER = 1,
	UNSPIN_MODE_KERNEL = 2,
};

/* Flags of UNSPIN_EVENT_SWITCH_OUT; bits 4 and 5 hold an enum unspin_guest_mode. */
#define UNSPIN_SWITCH_RUNNABLE 0x1u /* preempted or yielded; else asleep: halted, or waiting in user space */
#define UNSPIN_SWITCH_PREEMPT 0x2u  /* the scheduler took the CPU; else the thread called schedule() itself */
#define UNSPIN_SWITCH_FLAGS 0x33u   /* all that may be set */
#define UNSPIN_SWITCH_MODE_SHIFT 4

/* How the sender named the receivers of an inter-processor interrupt (Intel SDM 3A, "Local APIC", ICR). */
enum unspin_ipi_form {
	UNSPIN_IPI_FORM_UNKNOWN = 0,
	UNSPIN_IPI_PHYSICAL = 1,
	UNSPIN_IPI_LOGICAL = 2,
	UNSPIN_IPI_SELF = 3,
	UNSPIN_IPI_ALL = 4,
	UNSPIN_IPI_ALL_BUT_SELF = 5,
	UNSPIN_IPI_HYPERCALL = 6, /* KVM_HC_SEND_IPI (Documentation/virt/kvm/x86/hypercalls.rst) */
	UNSPIN_IPI_FORMS = 7,
};

enum unspin_event_kind {
	UNSPIN_EVENT_NONE = 0,
	/* The vCPU's thread got a pCPU. argument0: thread id of the task that left it; argument1: its VM or UNSPIN_NO_VM. */
	UNSPIN_EVENT_SWITCH_IN = 1,
	/*
	 * The vCPU's thread left its pCPU. argument0: thread id of the task that follows, high half: its VM or UNSPIN_NO_VM;
	 * argument1: UNSPIN_SWITCH_* flags, high half: hardware code of the guest's last exit or UNSPIN_UNKNOWN_HALF;
	 * argument2: guest instruction pointer or UNSPIN_UNKNOWN.
	 */
	UNSPIN_EVENT_SWITCH_OUT = 2,
	/* A woken vCPU thread became runnable. argument0: thread id of the task that woke it. */
	UNSPIN_EVENT_WAKEUP = 3,
	/*
	 * Pause-loop exit. argument0: guest instruction pointer or UNSPIN_UNKNOWN; argument1: enum unspin_guest_mode, high half:
	 * window in force (AMD: PAUSEs; Intel: TSC cycles) or UNSPIN_UNKNOWN_HALF; argument2, bits 0..31: nanoseconds in the
	 * guest since the last entry, 32..47: other exits of this vCPU since its previous pause-loop exit, without host
	 * interrupts, 48..63: exits for host interrupts since then. Each of the three stops at its largest value.
	 */
	UNSPIN_EVENT_PAUSE_EXIT = 4,
	/* kvm_vcpu_on_spin() was entered. */
	UNSPIN_EVENT_ON_SPIN = 5,
	/*
	 * yield_to(), called by kvm_vcpu_on_spin(), returned. argument0: its result, as s64; argument1: vCPU number of the
	 * target or UNSPIN_UNKNOWN; argument2: the target's thread id.
	 */
	UNSPIN_EVENT_YIELD_TO = 6,
	/* The guest was left: any exit. argument0: hardware exit code or UNSPIN_UNKNOWN. */
	UNSPIN_EVENT_EXIT = 7,
	/* The guest was entered again. argument0: nanoseconds since the exit. */
	UNSPIN_EVENT_ENTRY = 8,
	/* Ground truth from the guest: a wait. argument0: nanoseconds it lasted; argument1: lock or target mask; argument2: kind. */
	UNSPIN_EVENT_GUEST_WAIT = 9,
	/*
	 * The guest was entered again after a pause-loop exit. argument0: nanoseconds since the exit; argument1: of them until
	 * the vCPU first left its pCPU, all if it did not (ruling 17's handling time).
	 */
	UNSPIN_EVENT_PAUSE_ENTRY = 10,
	/*
	 * An inter-processor interrupt was posted to one receiver; the vCPU is the sender, who may have several receivers.
	 * argument0: the receiver's vCPU number; argument1, bits 0..7: vector, 8..15: delivery mode as in the ICR, 16..23: enum
	 * unspin_ipi_form; argument2: destination as the sender wrote it, or UNSPIN_UNKNOWN.
	 */
	UNSPIN_EVENT_IPI = 11,
	/* Events are missing before this one, written by the reader of the ring. argument0: how many; argument1: their kind. */
	UNSPIN_EVENT_LOST = 12,
	/* The contents of the guest's pv page at a switch out or pause-loop exit just before. Arguments: abi/guest/pv_page.h. */
	UNSPIN_EVENT_PV_PAGE = 13,
	UNSPIN_EVENT_KINDS = 14, /* how many numbers are taken */
};

struct unspin_event {
	unspin_u64 time_ns;
	unspin_u32 kind; /* enum unspin_event_kind */
	unspin_u32 vm;	 /* number in order of appearance */
	unspin_u32 thread;
	unspin_u16 vcpu;
	unspin_u16 cpu; /* pCPU it happened on */
	unspin_u64 argument0;
	unspin_u64 argument1;
	unspin_u64 argument2;
};
UNSPIN_ASSERT_SIZE(struct unspin_event, 48);

#define UNSPIN_LATENCY_BUCKETS 32u

/* Counters of one vCPU thread. Names of kernel functions and counters are the kernel's. */
struct unspin_vcpu_counters {
	unspin_u32 vm;
	unspin_u32 thread;
	unspin_u32 vcpu;
	unspin_u32 process;		   /* thread group of the VMM */
	unspin_u64 exits;		   /* all */
	unspin_u64 ple_exits;		   /* exit code 0x77 (AMD), basic exit reason 40 (Intel) */
	unspin_u64 ple_exits_user;	   /* of them with the guest in user mode */
	unspin_u64 ple_exits_unknown_mode; /* of them with the mode unknown */
	unspin_u64 on_spin;		   /* calls of kvm_vcpu_on_spin */
	unspin_u64 on_spin_no_yield;	   /* of them: yield_to was not called at all */
	unspin_u64 yield_to_boosted;	   /* yield_to() > 0 */
	unspin_u64 yield_to_refused;	   /* yield_to() == 0 */
	unspin_u64 yield_to_failed;	   /* yield_to() < 0 */
	unspin_u64 switches_in;		   /* since the thread was first seen, which was on a pCPU */
	unspin_u64 switches_out_runnable;  /* preempted or yielded */
	unspin_u64 switches_out_asleep;
	unspin_u64 running_ns;
	unspin_u64 runnable_ns; /* waiting for a pCPU */
	unspin_u64 asleep_ns;
	unspin_u64
		wall_ns; /* since first seen, until now or the thread's end: running + runnable + asleep, measured apart */
	unspin_u64 exit_to_entry_ns;				/* sum, over all exits */
	unspin_u64 exit_to_entry_count[UNSPIN_LATENCY_BUCKETS]; /* bucket b: [2^b, 2^(b+1)) ns; 0 also in bucket 0 */
};
UNSPIN_ASSERT_SIZE(struct unspin_vcpu_counters, 16 + 17 * 8 + 256);

#endif
