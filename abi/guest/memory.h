/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * memory.h - what the micro guest (guest/) and its VMM (crates/vmm) share: the memory map, the parameters that the
 * VMM writes before the first instruction, the statistics and the ground truth that the guest keeps.
 *
 * Guest physical memory is one region of UNSPIN_GUEST_MEMORY_BYTES, mapped one to one. The VMM reads statistics
 * while the guest runs: every field is written by one vCPU only, naturally aligned, and monotonic, so a torn view
 * is at worst one operation old. The VMM trusts nothing in it: an index read from guest memory is checked.
 */
#ifndef UNSPIN_ABI_GUEST_MEMORY_H
#define UNSPIN_ABI_GUEST_MEMORY_H

#include "../types.h"

#define UNSPIN_GUEST_MAGIC 0x4e505355u /* "USPN" */
#define UNSPIN_GUEST_VERSION 3u

#define UNSPIN_GUEST_VCPUS_MAX 64u
#define UNSPIN_GUEST_LOCKS_MAX 64u
#define UNSPIN_GUEST_TASKS_MAX 64u /* of all vCPUs of a VM */
#define UNSPIN_GUEST_TASKS_PER_VCPU_MAX 8u

/* Memory map, guest physical addresses in bytes. */
#define UNSPIN_GUEST_MEMORY_BYTES 0x01000000u	   /* 16 MiB in all */
#define UNSPIN_GUEST_PAGE_TABLES 0x00001000u	   /* written by the VMM: PML4, PDPT, PD */
#define UNSPIN_GUEST_PARAMETERS 0x00010000u	   /* struct unspin_guest_parameters */
#define UNSPIN_GUEST_STATISTICS 0x00020000u	   /* struct unspin_guest_statistics per vCPU, one stride each */
#define UNSPIN_GUEST_STATISTICS_STRIDE 0x00002000u /* 8 KiB; 64 of them end at 0x000a0000 */
#define UNSPIN_GUEST_PV_PAGE 0x000a0000u   /* struct unspin_pv_page per vCPU: two pages, of the host's if it likes */
#define UNSPIN_GUEST_IMAGE 0x00200000u	   /* kernel: text, data, stacks; supervisor pages */
#define UNSPIN_GUEST_USER 0x00400000u	   /* user text and stacks: the only pages open to CPL 3 */
#define UNSPIN_GUEST_LOG 0x00600000u	   /* struct unspin_guest_wait, log_records of them per vCPU */
#define UNSPIN_GUEST_LOG_BYTES 0x00a00000u /* 10 MiB, up to the end of memory */

/*
 * State of every vCPU before its first instruction, set by the VMM; there is no boot processor and no INIT/SIPI:
 *   CR0     PE MP ET NE WP PG            CR4  PAE
 *   EFER    SCE LME LMA NXE              CR3  UNSPIN_GUEST_PAGE_TABLES
 *   paging  the first 16 MiB one to one in 2 MiB pages, present, writable, executable; the page at UNSPIN_GUEST_USER
 *           also open to CPL 3 (the upper levels must be, too), all others supervisor only
 *   CS      flat, 64-bit, CPL 0; SS, DS, ES flat data; FS, GS null. No descriptor table is needed: the guest loads its
 *           own GDT, TSS and IDT before it enables interrupts
 *   RFLAGS  2 (IF = 0)                   RIP  entry of the ELF image
 *   RDI     number of the vCPU, which must also be its x2APIC id; RSP anything: the guest sets its own
 *   APIC    enabled, in xAPIC or x2APIC mode (the guest switches); MP state runnable; guest memory zero but for the
 *           image's segments (loaded at their physical addresses), the page tables and the parameters
 *   CPUID   as the host supports it: x2APIC is needed, KVM's leaves with steal time are used when there
 * The guest uses general registers only, no hypercall but those of pv_page.h and, where CPUID offers them, KVM_HC_KICK_CPU and
 * KVM_HC_SCHED_YIELD, no port but these two, no MMIO; MSRs: APIC_BASE, x2APIC's, STAR, LSTAR, SFMASK, GS_BASE, KVM's steal
 * time. It enters CPL 3 by IRET and comes back by SYSCALL.
 *
 * Ports the guest writes to (32-bit OUT, value in EAX): the only exits to user space. DONE comes once from every vCPU,
 * after all of them have finished their iterations (until then they go on answering interrupts), and the vCPU need not be
 * entered again. With PANIC, RBX holds the instruction pointer of the fault, RCX CR2, RSI the error code (0 without).
 */
#define UNSPIN_PORT_DONE 0x10u	/* this vCPU has finished; value 0 */
#define UNSPIN_PORT_PANIC 0x11u /* the guest gave up; value = enum unspin_guest_panic | vector << 8 */

enum unspin_guest_panic {
	UNSPIN_PANIC_PARAMETERS = 1, /* magic, version or a bound is wrong */
	UNSPIN_PANIC_EXCEPTION = 2,  /* an exception that nothing expects; vector in bits 8..15 */
	UNSPIN_PANIC_EXCLUSION = 3,  /* two vCPUs were inside one lock */
};

/* What goes wrong on purpose, so that tests can see it reported. */
enum unspin_guest_fault {
	UNSPIN_FAULT_NONE = 0,
	UNSPIN_FAULT_TRIPLE = 1,       /* vCPU 0 triple-faults once all vCPUs are up */
	UNSPIN_FAULT_EXCEPTION = 2,    /* vCPU 0 executes UD2 then: panic EXCEPTION, vector 6 */
	UNSPIN_FAULT_EXCLUSION = 3,    /* the lock lets everybody in: panic EXCLUSION soon, with 2 vCPUs or more */
	UNSPIN_FAULT_REFUSED_KICK = 4, /* kicks by a hypercall that KVM refuses: no failure, IPIs do it */
	UNSPIN_FAULT_PV_PAGE_GONE = 5, /* pv pages that lose their magic, and registrations of nowhere: no failure */
	UNSPIN_FAULT_PV_PAGE_LIES = 6, /* pv pages of random words, the host's among them: no failure */
	UNSPIN_FAULTS = 7,
};

/* What the tasks of a VM do with their iterations. */
enum unspin_guest_workload {
	UNSPIN_WORKLOAD_ITERATIONS = 0,	     /* work in user mode, work in the kernel, a lock held */
	UNSPIN_WORKLOAD_READERS_WRITERS = 1, /* the same, the lock taken for reading by a share of the iterations */
	UNSPIN_WORKLOAD_INTERRUPTS = 2,	     /* the same, and after each iteration an interrupt whose handler works */
	UNSPIN_WORKLOAD_PING_PONG = 3, /* pairs of tasks on neighbouring vCPUs that wake each other, after user work */
	UNSPIN_WORKLOAD_READ_A_FILE =
		4, /* eCS, section 5.3: 4 KiB of one file: rwsem read, RCU section, page lock, copy */
	UNSPIN_WORKLOADS = 5,
};

/* Work is a number of iterations of a two-instruction loop ("loops"): it is CPU time, never wall time. */
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
	unspin_u32 magic;      /* UNSPIN_GUEST_MAGIC */
	unspin_u32 version;    /* UNSPIN_GUEST_VERSION */
	unspin_u64 seed;       /* of this VM; a vCPU's generator starts from seed and its number */
	unspin_u32 vcpus;      /* 1..64 */
	unspin_u32 lock_kind;  /* enum unspin_lock_kind */
	unspin_u32 locks;      /* 1..64 shared locks, drawn at random each iteration; 0: one private lock per vCPU */
	unspin_u32 iterations; /* iterations per vCPU, then done; 0: until stop */
	unspin_u32 shootdown_every_iterations; /* 0: never */
	unspin_u32 wakeup_every_iterations;    /* 0: never */
	unspin_u32 pause_every_spins;	       /* 1..65536: PAUSE at every k-th spin of a waiting loop only */
	unspin_u32 tick_hz;		       /* 0..10000; 0: no tick */
	unspin_u32 apic_timer_hz;	       /* rate of the APIC timer's count at divide by 1, from the VMM */
	unspin_u32 log_records; /* per vCPU, vcpus * log_records * 64 bytes fit the log; keeps the first so many */
	unspin_u32 log_minimum_spins;	      /* waits shorter than this are not logged (0: all) */
	unspin_u32 stall_spins;		      /* a wait of more spins is a stall: 2048 (VEE'13 section 3, ruling 10) */
	struct unspin_distribution user_work; /* at CPL 3, outside everything */
	struct unspin_distribution kernel_work; /* at CPL 0, outside the lock */
	struct unspin_distribution hold;	/* at CPL 0, inside the lock */
	unspin_u32 stop;	     /* the VMM sets it to 1; every vCPU then finishes its iteration and is done */
	unspin_u32 fault_injection;  /* enum unspin_guest_fault */
	unspin_u32 pv_page;	     /* 1: every vCPU registers a struct unspin_pv_page and keeps it (pv_page.h) */
	unspin_u32 help_after_spins; /* ask for help each time it has spun so often for a lock; 0: never */
	unspin_u32 tasks_per_vcpu;   /* 1..8, and at most UNSPIN_GUEST_TASKS_MAX in all; iterations are each task's */
	unspin_u32 workload;	     /* enum unspin_guest_workload */
	unspin_u32
		reader_percent; /* 0..100: iterations that take the lock for reading (readers-writers, read-a-file) */
	unspin_u32 ecs_no_save; /* 1: the ablation: preemptable counters are not saved when tasks are switched */
	unspin_u64
		load_cycles; /* TSC: after so many the load changes (guest/iteration.c), counted from TSC 0; 0: never */
};
UNSPIN_ASSERT_SIZE(struct unspin_guest_parameters, 64 + 3 * 1024 + 40);

/* What a vCPU is doing now; it is what the host cannot see and a test compares with. */
enum unspin_guest_state {
	UNSPIN_STATE_BOOT = 0,
	UNSPIN_STATE_USER = 1,
	UNSPIN_STATE_KERNEL = 2,
	UNSPIN_STATE_WAITING = 3, /* for a lock */
	UNSPIN_STATE_HOLDING = 4,
	UNSPIN_STATE_SHOOTDOWN = 5, /* for the answers to its IPI */
	UNSPIN_STATE_HALTED = 6,
	UNSPIN_STATE_DONE = 7,
};

#define UNSPIN_HISTOGRAM_BUCKETS 64u
#define UNSPIN_GUEST_ECS_CLASSES 6u /* UNSPIN_ECS_CLASSES of policy/classify/ecs_class.h; guest/ asserts it */

/* Bucket b counts values v in [2^b, 2^(b+1)); bucket 0 also 0. Units: TSC cycles. */
struct unspin_histogram {
	unspin_u64 count[UNSPIN_HISTOGRAM_BUCKETS];	 /* how many (Friebel: "Times") */
	unspin_u64 sum_cycles[UNSPIN_HISTOGRAM_BUCKETS]; /* their sum (Friebel: "Time, not Times") */
};
UNSPIN_ASSERT_SIZE(struct unspin_histogram, 1024);

/* One per vCPU, written by that vCPU only. */
struct unspin_guest_statistics {
	unspin_u64 first_instruction_tsc;
	unspin_u64 done_tsc;   /* its own iterations are finished */
	unspin_u32 state;      /* enum unspin_guest_state */
	unspin_u32 steal_time; /* 1: KVM's steal-time page is registered; 0: KVM has none, its flags are unknown */
	unspin_u64 operations; /* iterations completed: one acquisition each */
	unspin_u64 pauses;     /* PAUSE instructions executed */
	unspin_u64 spin_count; /* spins of waiting loops, for locks and for answers */
	unspin_u64 lock_waits; /* acquisitions that found the lock taken */
	unspin_u64 lock_wait_cycles;	/* TSC, from asking until having, on the CPU or off it */
	unspin_u64 lock_wait_stolen_ns; /* of that the host did not run the vCPU (KVM's steal time); the rest it spun */
	unspin_u64 stalls;		/* lock waits of more than stall_spins: Table 1's Nh + Nw */
	unspin_u64 stalls_unheld;	/* of them: nobody held the lock at that moment: Table 1's Nw */
	unspin_u64 hold_cycles;		/* from having the lock until unlock is done */
	unspin_u64 longest_wait_cycles; /* for a lock */
	unspin_u64 shootdowns;		/* sent */
	unspin_u64 shootdown_wait_cycles;
	unspin_u64 shootdown_wait_stolen_ns; /* as above */
	unspin_u64 shootdowns_answered;
	unspin_u64 wakeups;	     /* tokens given to the next vCPU, each with an IPI */
	unspin_u64 wakeups_received; /* tokens consumed */
	unspin_u64 halts;
	unspin_u64 ticks;
	unspin_u64 ticks_in_user; /* that interrupted CPL 3 */
	unspin_u64 log_kept;
	unspin_u64 log_dropped;
	unspin_u64 steal_ns;	       /* as KVM's steal-time page says at the end */
	unspin_u64 lock_halts;	       /* HLTs of waits for locks: a waiter parked, or a vCPU whose tasks all sleep */
	unspin_u64 lock_parked_cycles; /* of lock_wait_cycles: parked or asleep, the rest it spun or was off its CPU */
	unspin_u64 lock_parked_stolen_ns; /* of lock_wait_stolen_ns: while parked or asleep */
	unspin_u64 kicks;		  /* vCPUs woken, by hypercall or IPI */
	unspin_u64 kicks_refused;	  /* of them: the host refused the hypercall */
	unspin_u64 helps;		  /* UNSPIN_HYPERCALL_HELP */
	unspin_u64 named_yields;	  /* KVM_HC_SCHED_YIELD */
	unspin_u64 task_switches;	  /* from one task of this vCPU to another */
	unspin_u64 task_sleeps;		  /* tasks that left the run queue */
	unspin_u64 task_wakes;		  /* of this vCPU's tasks */
	unspin_u64 pv_page_registrations;
	unspin_u64 pv_page_acknowledgements; /* of them answered by the host */
	unspin_u64 interrupts_worked;	     /* handlers of the workload that worked */
	unspin_u64 reads;		     /* of operations: the lock was taken for reading */
	/*
	 * Ground truth of preemptions: KVM's steal time had grown since the class counters changed last, so the vCPU was
	 * off its CPU with them as they were. By enum unspin_ecs_class (policy/classify/ecs_class.h): by precedence, and in every
	 * class that applied. Time asleep in HLT, and until it runs again, is in none.
	 */
	unspin_u64 preempted[UNSPIN_GUEST_ECS_CLASSES];
	unspin_u64 preempted_in[UNSPIN_GUEST_ECS_CLASSES];
	unspin_u64 preempted_ns[UNSPIN_GUEST_ECS_CLASSES]; /* steal time by precedence */
	/*
	 * BWW (ruling 23): of woken tasks, from the wake-up until it runs, in the parts of policy/classify/wakeup.h, which together are
	 * the whole. Without steal time or tsc_khz the host's part is in the other two.
	 */
	unspin_u64 bww_exit_cycles;
	unspin_u64 bww_host_cycles;
	unspin_u64 bww_guest_cycles;
	unspin_u64 tsc_khz; /* as the guest's CPUID says; 0: not known */
	struct unspin_histogram bww;
	struct unspin_histogram lock_wait; /* of lock_waits: acquisitions that found the lock free are not in it */
	struct unspin_histogram hold;
	struct unspin_histogram shootdown_wait;
};
_Static_assert(sizeof(struct unspin_guest_statistics) <= UNSPIN_GUEST_STATISTICS_STRIDE,
	       "statistics exceed their stride");

enum unspin_wait_kind {
	UNSPIN_WAIT_LOCK = 1,
	UNSPIN_WAIT_SHOOTDOWN = 2,
	UNSPIN_WAIT_ANSWER = 3, /* no wait: this vCPU answered a shootdown at begin_tsc; targets: bit of the sender */
};

#define UNSPIN_NOBODY 0xffu

/*
 * Ground truth: one acquisition, one shootdown or one answer. TSC values are the host's: the VMM sets the offset to zero.
 * A record is complete when `kind` is not 0 (written last).
 */
struct unspin_guest_wait {
	unspin_u64 begin_tsc;	   /* asked for the lock, or sent the IPI */
	unspin_u64 end_tsc;	   /* acquired, or all answers there */
	unspin_u64 released_tsc;   /* unlock done; shootdown: 0 */
	unspin_u64 stall_tsc;	   /* when the wait passed stall_spins; 0: it did not */
	unspin_u64 targets;	   /* shootdown: receivers, one bit per vCPU */
	unspin_u32 spins;	   /* of the waiting loop; 0: the lock was free */
	unspin_u16 lock;	   /* number of the lock */
	unspin_u8 kind;		   /* enum unspin_wait_kind */
	unspin_u8 holder_at_stall; /* vCPU, or UNSPIN_NOBODY */
	/* KVM's steal-time `preempted` flags of all vCPUs, read when the wait passed stall_spins; one bit each. */
	unspin_u64 preempted_at_stall;
	/* At that moment: vCPUs asking for the same lock, itself included; shootdown: those that have not answered yet. */
	unspin_u64 waiting_at_stall;
};
UNSPIN_ASSERT_SIZE(struct unspin_guest_wait, 64);

#endif
