/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * guest.h - what the micro guest (guest/) and its VMM (crates/vmm) share: the memory map, the parameters that the
 * VMM writes before the first instruction, the statistics and the ground truth that the guest keeps.
 *
 * Guest physical memory is one region of UNSPIN_GUEST_MEMORY_BYTES, mapped one to one. The VMM reads statistics
 * while the guest runs: every field is written by one vCPU only, naturally aligned, and monotonic, so a torn view
 * is at worst one operation old. The VMM trusts nothing in it: an index read from guest memory is checked.
 */
#ifndef UNSPIN_ABI_GUEST_H
#define UNSPIN_ABI_GUEST_H

#include "types.h"

#define UNSPIN_GUEST_MAGIC 0x4e505355u /* "USPN" */
#define UNSPIN_GUEST_VERSION 1u

#define UNSPIN_GUEST_VCPUS_MAX 64u
#define UNSPIN_GUEST_LOCKS_MAX 64u

/* Memory map, guest physical addresses in bytes. */
#define UNSPIN_GUEST_MEMORY_BYTES 0x01000000u	  /* 16 MiB in all */
#define UNSPIN_GUEST_PAGE_TABLES 0x00001000u	  /* written by the VMM: PML4, PDPT, PD */
#define UNSPIN_GUEST_PARAMETERS 0x00010000u	  /* struct unspin_guest_parameters */
#define UNSPIN_GUEST_STATISTICS 0x00020000u	  /* struct unspin_guest_statistics per vCPU, one stride each */
#define UNSPIN_GUEST_STATISTICS_STRIDE 0x00002000u /* 8 KiB; 64 of them end at 0x000a0000 */
#define UNSPIN_GUEST_IMAGE 0x00200000u		  /* kernel: text, data, stacks; supervisor pages */
#define UNSPIN_GUEST_USER 0x00400000u		  /* user text and stacks: the only pages open to CPL 3 */
#define UNSPIN_GUEST_LOG 0x00600000u		  /* struct unspin_guest_wait, log_records of them per vCPU */
#define UNSPIN_GUEST_LOG_BYTES 0x00a00000u	  /* 10 MiB, up to the end of memory */

/* Ports the guest writes to (32-bit OUT, value in EAX): the only exits to user space. */
#define UNSPIN_PORT_DONE 0x10u	/* this vCPU has finished; value 0 */
#define UNSPIN_PORT_PANIC 0x11u /* the guest gave up; value = enum unspin_guest_panic | vector << 8 */

enum unspin_guest_panic {
	UNSPIN_PANIC_PARAMETERS = 1, /* magic, version or a bound is wrong */
	UNSPIN_PANIC_EXCEPTION = 2,  /* an exception that nothing expects; vector in bits 8..15 */
	UNSPIN_PANIC_EXCLUSION = 3,  /* two vCPUs were inside one lock */
};

/* Work is a number of turns of a two-instruction loop ("loops"): it is CPU time, never wall time. */
#define UNSPIN_QUANTILES 256u

/*
 * A distribution, as equally likely values: entry i stands for the i-th 256th of the probability mass (its mean).
 * crates/scenario computes it; guest, threads and lab draw from it by an 8-bit random index.
 */
struct unspin_distribution {
	unspin_u32 quantile_loops[UNSPIN_QUANTILES];
};
UNSPIN_ASSERT_SIZE(struct unspin_distribution, 1024);

/* Written by the VMM before the guest starts; afterwards only `stop` changes. */
struct unspin_guest_parameters {
	unspin_u32 magic;   /* UNSPIN_GUEST_MAGIC */
	unspin_u32 version; /* UNSPIN_GUEST_VERSION */
	unspin_u64 seed;    /* of this VM; a vCPU's generator starts from seed and its number */
	unspin_u32 vcpus;   /* 1..64 */
	unspin_u32 lock_kind; /* enum unspin_lock_kind */
	unspin_u32 locks;   /* 1..64 shared locks, drawn at random each turn; 0: one private lock per vCPU */
	unspin_u32 turns;   /* turns per vCPU, then done; 0: until stop */
	unspin_u32 shootdown_every_turns; /* 0: never */
	unspin_u32 wakeup_every_turns;	  /* 0: never */
	unspin_u32 pause_every_turns; /* 1..65536: PAUSE at every k-th turn of a waiting loop only */
	unspin_u32 tick_hz;	      /* 0..10000; 0: no tick */
	unspin_u32 apic_timer_hz;     /* rate of the APIC timer's count at divide by 1, from the VMM */
	unspin_u32 log_records;	      /* per vCPU; the log keeps the first so many waits and counts the rest */
	unspin_u32 log_minimum_turns; /* waits shorter than this are not logged (0: all) */
	unspin_u32 stall_turns;	      /* a wait of more turns is a stall: 2048 (VEE'13 section 3, ruling 10) */
	struct unspin_distribution user_work;	/* at CPL 3, outside everything */
	struct unspin_distribution kernel_work; /* at CPL 0, outside the lock */
	struct unspin_distribution hold;	/* at CPL 0, inside the lock */
	unspin_u32 stop;			/* the VMM sets it to 1; every vCPU then finishes its turn and is done */
	unspin_u32 reserved;
};
UNSPIN_ASSERT_SIZE(struct unspin_guest_parameters, 64 + 3 * 1024 + 8);

/* What a vCPU is doing now; it is what the host cannot see and a test compares with. */
enum unspin_guest_state {
	UNSPIN_STATE_BOOT = 0,
	UNSPIN_STATE_USER = 1,
	UNSPIN_STATE_KERNEL = 2,
	UNSPIN_STATE_WAITING = 3,   /* for a lock */
	UNSPIN_STATE_HOLDING = 4,
	UNSPIN_STATE_SHOOTDOWN = 5, /* for the answers to its IPI */
	UNSPIN_STATE_HALTED = 6,
	UNSPIN_STATE_DONE = 7,
};

#define UNSPIN_HISTOGRAM_BUCKETS 64u

/* Bucket b counts values v in [2^b, 2^(b+1)); bucket 0 also 0. Units: TSC cycles. */
struct unspin_histogram {
	unspin_u64 count[UNSPIN_HISTOGRAM_BUCKETS];	 /* how many (Friebel: "Times") */
	unspin_u64 sum_cycles[UNSPIN_HISTOGRAM_BUCKETS]; /* their sum (Friebel: "Time, not Times") */
};
UNSPIN_ASSERT_SIZE(struct unspin_histogram, 1024);

/* One per vCPU, written by that vCPU only. */
struct unspin_guest_statistics {
	unspin_u64 first_instruction_tsc;
	unspin_u64 done_tsc;
	unspin_u32 state; /* enum unspin_guest_state */
	unspin_u32 reserved;
	unspin_u64 operations;	    /* turns completed: one acquisition each */
	unspin_u64 pauses;	    /* PAUSE instructions executed */
	unspin_u64 spin_turns;	    /* turns of waiting loops, for locks and for answers */
	unspin_u64 lock_waits;	    /* acquisitions that found the lock taken */
	unspin_u64 lock_wait_cycles; /* TSC, spent in them */
	unspin_u64 stalls;	    /* waits of more than stall_turns: Table 1's Nh + Nw */
	unspin_u64 stalls_unheld;   /* of them: nobody held the lock at that moment: Table 1's Nw */
	unspin_u64 hold_cycles;
	unspin_u64 longest_wait_cycles;
	unspin_u64 shootdowns; /* sent */
	unspin_u64 shootdown_wait_cycles;
	unspin_u64 shootdowns_answered;
	unspin_u64 wakeups; /* sent */
	unspin_u64 wakeups_received;
	unspin_u64 halts;
	unspin_u64 ticks;
	unspin_u64 ticks_in_user; /* that interrupted CPL 3 */
	unspin_u64 log_kept;
	unspin_u64 log_dropped;
	unspin_u64 steal_ns; /* as KVM's steal-time page says at the end */
	struct unspin_histogram lock_wait;
	struct unspin_histogram hold;
	struct unspin_histogram shootdown_wait;
};
_Static_assert(sizeof(struct unspin_guest_statistics) <= UNSPIN_GUEST_STATISTICS_STRIDE, "statistics exceed their stride");

enum unspin_wait_kind {
	UNSPIN_WAIT_LOCK = 1,
	UNSPIN_WAIT_SHOOTDOWN = 2,
};

#define UNSPIN_NOBODY 0xffu

/*
 * Ground truth: one acquisition or one shootdown. TSC values are the host's: the VMM sets the offset to zero.
 * A record is complete when `kind` is not 0 (written last).
 */
struct unspin_guest_wait {
	unspin_u64 begin_tsc;	 /* asked for the lock, or sent the IPI */
	unspin_u64 end_tsc;	 /* acquired, or all answers there */
	unspin_u64 released_tsc; /* unlock done; shootdown: 0 */
	unspin_u64 stall_tsc;	 /* when the wait passed stall_turns; 0: it did not */
	unspin_u64 targets;	 /* shootdown: receivers, one bit per vCPU */
	unspin_u32 turns;	 /* of waiting; 0: the lock was free */
	unspin_u16 lock;	 /* number of the lock */
	unspin_u8 kind;		 /* enum unspin_wait_kind */
	unspin_u8 holder_at_stall; /* vCPU, or UNSPIN_NOBODY */
	/* KVM's steal-time `preempted` flags of all vCPUs, read when the wait passed stall_turns; one bit each. */
	unspin_u64 preempted_at_stall;
	unspin_u64 reserved;
};
UNSPIN_ASSERT_SIZE(struct unspin_guest_wait, 64);

#endif
