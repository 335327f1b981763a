/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * observe.h - what bpf/observe/main.bpf.c and crates/agent share: the options that user space sets before the load, what is
 * kept per vCPU thread, what is kept once. Nobody else reads it: the words for everybody are those of events.h.
 */
#ifndef UNSPIN_ABI_BPF_OBSERVE_H
#define UNSPIN_ABI_BPF_OBSERVE_H

#include "events.h"

/* Constant while the programs are loaded. */
struct unspin_observe_options {
	unspin_u32 event_mask;	 /* bit k: events of kind k are written; 0: counters only */
	unspin_u32 direct_reads; /* 1: kernel memory is read by guarded loads, 0: by helper calls */
};
UNSPIN_ASSERT_SIZE(struct unspin_observe_options, 8);

/* What a vCPU thread is doing; the scheduler's view. */
enum unspin_thread_state {
	UNSPIN_THREAD_NONE = 0, /* free slot */
	UNSPIN_THREAD_RUNNING = 1,
	UNSPIN_THREAD_RUNNABLE = 2,
	UNSPIN_THREAD_ASLEEP = 3,
	UNSPIN_THREAD_ENDED = 4, /* it exited or serves another vCPU now; nothing changes any more */
};

/* Receivers of one interrupt that KVM's fast path may name before it says that it was an IPI (bpf/observe/ipi.bpf.h). */
#define UNSPIN_UNCLAIMED_RECEIVERS 16

/* What a vCPU sends: its interrupt command of the exit that is being handled, and receivers that no command has claimed. */
struct unspin_ipi_sender {
	unspin_u64 destination;	   /* as in UNSPIN_EVENT_IPI */
	unspin_u64 exit;	   /* number of the exit in which it was sent: 0 for none, exits are counted from 1 */
	unspin_u64 unclaimed_exit; /* the same for receivers that no IPI has claimed yet */
	unspin_u64 unclaimed_ns;   /* when the first of them came */
	unspin_u32 how;		   /* as in UNSPIN_EVENT_IPI */
	unspin_u32 unclaimed_how;  /* vector and delivery mode, likewise */
	unspin_u32 unclaimed_count;
	unspin_u32 reserved;
	unspin_u32 unclaimed[UNSPIN_UNCLAIMED_RECEIVERS]; /* their vCPU numbers */
};
UNSPIN_ASSERT_SIZE(struct unspin_ipi_sender, 48 + 4 * UNSPIN_UNCLAIMED_RECEIVERS);

/*
 * One vCPU thread. Each field has one writer at a time: the thread itself, or the scheduler under its run queue's lock.
 * `sequence` is odd while state, since_ns and the three times are being changed: a reader that finds it odd, or changed,
 * reads again.
 */
struct unspin_observed_thread {
	unspin_u32 sequence;
	unspin_u32 state;	     /* enum unspin_thread_state */
	unspin_u64 since_ns;	     /* when that state began */
	unspin_u64 first_seen_ns;    /* CLOCK_MONOTONIC */
	unspin_u64 task_pointer;     /* struct task_struct *, only compared; 0: ended */
	unspin_u64 vcpu_pointer;     /* struct kvm_vcpu *, never followed without a safe read */
	unspin_u64 vm_generation;    /* of unspin_observe_globals when the VM's number was last looked up */
	unspin_u64 left_guest_ns;    /* time of the exit that is being handled; 0: none */
	unspin_u64 entered_guest_ns; /* time of the last entry; 0: none seen */
	unspin_u64 handled_ns; /* handling time of a pause-loop exit that has already ended: it left its pCPU; else 0 */
	unspin_u32 isa;	       /* as kvm_exit says: 1 VMX, 2 SVM; 0: not seen yet */
	unspin_u32 exit_code;  /* of the last exit, or UNSPIN_UNKNOWN_HALF */
	unspin_u32 other_exits;	    /* since the last pause-loop exit, without host interrupts */
	unspin_u32 interrupt_exits; /* since then, for host interrupts */
	unspin_u32 after_pause;	    /* 1: the exit that is being handled is a pause-loop exit */
	unspin_u32 reserved;
	unspin_u32 inside_on_spin; /* 1 from the entry of kvm_vcpu_on_spin() until the next entry of the guest */
	unspin_u32 on_spin_yields; /* calls of yield_to() that returned since */
	unspin_u64
		yield_to_target; /* struct task_struct * of the yield_to() under way, never followed without a safe read */
	unspin_u64 pv_page_address;	      /* of the vCPU's struct unspin_pv_page in its VMM; 0: none registered */
	struct unspin_ipi_sender ipi;	      /* exits are those of counters.exits */
	struct unspin_vcpu_counters counters; /* wall_ns is left to the reader */
};
UNSPIN_ASSERT_SIZE(struct unspin_observed_thread, 232 + sizeof(struct unspin_vcpu_counters));

struct unspin_observe_globals {
	unspin_u64 lost_events[UNSPIN_EVENT_KINDS]; /* the ring was full, by kind */
	unspin_u64 unobserved_exits;		    /* exits of vCPU threads for which there was no slot or no memory */
	unspin_u64 vms;				    /* numbers given so far */
	unspin_u64 vm_to_number;		    /* struct kvm * of the VM that is given one; 0: none */
	unspin_u64 vm_generation;		    /* VMs destroyed so far */
	unspin_u64 slots_taken;			    /* by threads, so far */
	unspin_u64 slots_ended; /* of them, those whose thread is done; user space may return them */
};
UNSPIN_ASSERT_SIZE(struct unspin_observe_globals, (UNSPIN_EVENT_KINDS + 6) * 8);

/* What a thread asks of bpf/observe/synthetic.bpf.c about itself; the context of its programs. */
struct unspin_synthetic {
	unspin_u64 vm;	   /* stands for a struct kvm *; not 0 */
	unspin_u32 vcpu;   /* number */
	unspin_u32 exits;  /* added to the thread's counter */
	unspin_u32 events; /* to write; argument0 counts them from `first` */
	unspin_u32 done;   /* written by the program: 1, or 0 when there was no slot */
	unspin_u64 first;
	unspin_u32 icr_low; /* of an IPI to send; and its destination */
	unspin_u32 destination;
	unspin_u32 receivers;  /* vCPUs 0 to this accept it */
	unspin_u32 fast;       /* 1: KVM's fast path, which names receivers first */
	unspin_u32 own_vector; /* of an interrupt of its own that comes after; 0: none */
	unspin_u32 reserved;
};
UNSPIN_ASSERT_SIZE(struct unspin_synthetic, 56);

#endif
