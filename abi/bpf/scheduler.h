/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * scheduler.h - what bpf/scheduler/main.bpf.c and crates/agent share: options set before the load, what user space may change while
 * it runs, counters, and why it ended.
 */
#ifndef UNSPIN_ABI_BPF_SCHEDULER_H
#define UNSPIN_ABI_BPF_SCHEDULER_H

#include "../types.h"

/* Constant while the scheduler is loaded. */
struct unspin_steer_options {
	unspin_u64 slice_ns;	  /* the kernel's base_slice_ns */
	unspin_u32 cpus;	  /* possible CPUs: numbers 0 to cpus - 1 */
	unspin_u32 everyone;	  /* 1: policies touch every vCPU; 0: those of steered processes and cgroups */
	unspin_u32 log_decisions; /* 1: every decision is written to a ring */
	unspin_u32 disclosure;	  /* enum unspin_disclosure, of guests for which nothing else was said */
	unspin_u32 sections;	  /* functions in the map `sections`, at most UNSPIN_STEER_SECTIONS_MAX; 0: none */
	unspin_u32 chooses;	  /* 1: programs for rules of candidates are loaded (bpf/scheduler/yield/spin.bpf.h) */
	unspin_u32
		writes_memory; /* 1: the kernel lets BPF write guest memory; 0: guests are told in pages of our map only */
	unspin_u32
		only_vms; /* 1: threads of VMs only, which user space moves here; 0: every task that is not real-time */
	unspin_u32 domains;	 /* of CPUs that take shared tasks: 1 to UNSPIN_STEER_DOMAINS_MAX */
	unspin_u32 direct_reads; /* 1: the kernel lets BPF load its memory without a call (bpf/common/reads.bpf.h) */
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_options, 48);

/* Why a thread concerns user space where `only_vms` is 1. */
enum unspin_steer_thread_kind {
	UNSPIN_STEER_THREAD_VCPU = 0,  /* it enters a guest: to be moved here */
	UNSPIN_STEER_THREAD_PAGE = 1,  /* it counts its critical sections in a page: the same if its process has a VM */
	UNSPIN_STEER_THREAD_CHILD = 2, /* it was created by one that was moved, and has its policy: to be moved back */
};

/* A record of the ring `moves`. */
struct unspin_steer_thread {
	unspin_u64 time_ns; /* CLOCK_MONOTONIC */
	unspin_u32 process;
	unspin_u32 thread;
	unspin_u32 kind;   /* enum unspin_steer_thread_kind */
	unspin_u32 parent; /* thread that created a child; otherwise 0 */
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_thread, 24);

/*
 * Members of struct sched_ext_ops, as bpf/scheduler/kernel.bpf.h has it, that user space sets where `only_vms` is 1: where they are,
 * bytes. Of kernel/sched/ext/internal.h, Linux 7.2: the flag SCX_OPS_SWITCH_PARTIAL, and SCX_WATCHDOG_MAX_TIMEOUT, ms: beside busy
 * tasks of the fair class vCPUs get what the kernel keeps for them, and a crowd of them waits for more than 5 s for its turn.
 */
#define UNSPIN_STEER_OPS_FLAGS_AT 208u
#define UNSPIN_STEER_OPS_TIMEOUT_MS_AT 216u
#define UNSPIN_STEER_OPS_SWITCH_PARTIAL 8u
#define UNSPIN_STEER_ONLY_VMS_TIMEOUT_MS 30000u

/* How much guests are told in their pv pages; what each level means for them stands in pv_page.h. */
enum unspin_disclosure {
	UNSPIN_DISCLOSE_NOTHING = 0,
	UNSPIN_DISCLOSE_OWN = 1, /* `acknowledged`, `borrowed`, `vcpu_preempted` */
	UNSPIN_DISCLOSE_ALL = 2, /* `pcpu_overloaded`, too */
};

/* A piece of a guest kernel's text that only runs inside critical sections; guest-virtual, `end` is the first beyond it. */
struct unspin_steer_section {
	unspin_u64 first;
	unspin_u64 end;
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_section, 16);
#define UNSPIN_STEER_SECTIONS_MAX 4096u

/* Which policies act upon a vCPU, and their parameters. */
struct unspin_steer_choice {
	unspin_u32 policies;	 /* bits of policy/steering/policies.h; 0: none */
	unspin_u32 slice_ns;	 /* of steered vCPUs (policy/steering/slice.h); 0: the kernel's */
	unspin_u32 recent_ns;	 /* policy/steering/helping.h */
	unspin_u32 threshold_ns; /* policy/steering/yield_buddy.h */
	unspin_u32
		candidates; /* with UNSPIN_POLICY_CANDIDATES: enum unspin_candidate_rule (policy/steering/candidate.h) */
	unspin_u32 candidate_options; /* UNSPIN_CANDIDATES_* */
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_choice, 24);

/* Written by user space at any time; vCPUs follow when `policy_changes` changes. */
struct unspin_steer_control {
	struct unspin_steer_choice everyone; /* of VMs that have none of their own */
	unspin_u32 chooses;		     /* as in the options: written once, at attach */
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_control, 28);

/* Who gave a VM policies of its own. */
enum unspin_steer_chosen_by {
	UNSPIN_STEER_CHOSEN_AT_START = 1, /* `steer --vm PROCESS=POLICY` */
	UNSPIN_STEER_CHOSEN_BY_SET = 2,	  /* `policy set --vm` */
	UNSPIN_STEER_CHOSEN_BY_AUTO = 3,  /* the policy `auto` */
};

/* Policies of one VM, by process, in the map `vm_policies`; written by user space at any time. */
#define UNSPIN_STEER_VMS_MAX 4096u
struct unspin_steer_vm {
	struct unspin_steer_choice choice;
	/*
	 * When the process began, clock ticks after boot (USER_HZ is 100; field 22 of /proc/PID/stat): another process that gets
	 * the number later has none of this.
	 */
	unspin_u64 started_ticks;
	unspin_u64 since_ns; /* when it was given: CLOCK_BOOTTIME */
	unspin_u32 by;	     /* enum unspin_steer_chosen_by */
	unspin_u32 unused;
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_vm, 48);

/* What is said of a CPU before the scheduler is attached. */
enum unspin_steer_cpu {
	UNSPIN_STEER_CPU_SHARED = 1,	/* takes tasks of the shared queue: not isolated */
	UNSPIN_STEER_CPU_NOHZ_FULL = 2, /* a task alone on it gets no tick */
};
/* Above these bits the number of its domain: CPUs that share a last-level cache (policy/mechanics/domains.h). */
#define UNSPIN_STEER_CPU_DOMAIN_SHIFT 8
#define UNSPIN_STEER_DOMAINS_MAX 64u

/* Sums since attach, over all CPUs. */
#define UNSPIN_STEER_COUNTERS(X)                                                                                       \
	X(dispatches, "calls of ops.dispatch")                                                                         \
	X(switches, "tasks that began to run")                                                                         \
	X(yields, "sched_yield() without a target")                                                                    \
	X(directed, "directed yields that KVM asked for")                                                              \
	X(refused, "of them refused")                                                                                  \
	X(honoured, "of them honoured: the target runs on the yielder's slice")                                        \
	X(lent, "of them honoured as a loan")                                                                          \
	X(yield_buddies,                                                                                               \
	  "of them taken as a yield buddy: the target runs on a slice of its own, unless that is too unfair")          \
	X(yield_buddy_followed, "yield buddy run")                                                                     \
	X(yield_buddy_too_unfair, "yield buddy not run: the target's virtual time was too far ahead")                  \
	X(deboosted, "yielders whose virtual time went up for a yield buddy")                                          \
	X(called, "vCPUs called to another CPU for a sibling's slice (gang)")                                          \
	X(superseded, "of them left to a rule of candidates, which chooses itself")                                    \
	X(spins, "pause-loop exits, and samples handled as one, at which a rule of candidates was asked")              \
	X(chosen, "of them at which another vCPU was chosen to run")                                                   \
	X(unnamed, "of them where KVM had asked for nobody at that exit")                                              \
	X(samples, "times that a vCPU which may be spinning was stopped to see where its guest is")                    \
	X(sampled, "of them handled as a pause-loop exit: its guest was waiting once more")                            \
	X(asked, "guests' asks for help")                                                                              \
	X(helped, "of them answered: another vCPU of the VM runs on the asker's slice")                                \
	X(unheard, "of them not looked into: nobody was found a moment ago")                                           \
	X(missed, "targets that ran elsewhere, or not at all, before their slice came")                                \
	X(given_back, "loans and grants ended by the borrower: a hypercall, or what a look found")                     \
	X(capped, "loans and grants ended by the clock")                                                               \
	X(returned, "lenders that went on with their slice")                                                           \
	X(granted, "slices that were prolonged")                                                                       \
	X(borrowed_ns, "time run on loans and directed yields, ns")                                                    \
	X(granted_ns, "time run on grants, ns")                                                                        \
	X(ended, "vCPUs that lost their CPU because their slice or extra time was over")                               \
	X(critical_ends, "ends of vCPUs' slices and extra times in a critical section while somebody waited")          \
	X(critical_lost, "of them those at which the vCPU lost its CPU")                                               \
	X(critical_pushed, "vCPUs that a real-time task pushed aside in a critical section")                           \
	X(pv_pages, "pv pages registered")                                                                             \
	X(pv_pages_in_map, "of them in pages of our map, which the guest's VMM has put into its memory")               \
	X(counts, "registrations of where a guest's own counts lie, repeated ones too")                                \
	X(in_sections, "looks that found a guest in a function of --sections")                                         \
	X(threads, "threads that took a page to count their critical sections in")                                     \
	X(pv_page_failures, "pv pages that could not be read or written")                                              \
	X(wakeups_preempt, "tasks that ran at once when they woke up, instead of the one that ran there")              \
	X(handed_over, "tasks that ran next as the one that had woken them went to sleep, past others that waited")    \
	X(shares_in_crowds, "tasks with short runs that went ahead of a crowd, as their share had come so far")        \
	X(brought_forward,                                                                                             \
	  "tasks that were placed nearer: they weigh more by now, or would have waited for more than 2 s")             \
	X(throttled, "tasks that began to wait because their cgroup, or one above, had used up its cpu.max")           \
	X(throttled_too_long, "of them let run, at the debt of their cgroup, as they had waited for 2 s")              \
	X(taken_idle, "tasks that a CPU without work took from the queue of another last-level cache's CPUs")          \
	X(taken_for_balance, "tasks that a busy CPU took from there, as those were behind")                            \
	X(unlogged, "decisions that found no room in the log")                                                         \
	X(groups_folded, "cgroups for which there was no room: they count as their parent")

enum unspin_steer_counter {
#define UNSPIN_STEER_COUNTER(name, says) unspin_steer_##name,
	UNSPIN_STEER_COUNTERS(UNSPIN_STEER_COUNTER)
#undef UNSPIN_STEER_COUNTER
		UNSPIN_STEER_COUNTER_COUNT
};

struct unspin_steer_counters {
	unspin_u64 of[UNSPIN_STEER_COUNTER_COUNT];
};

/* What the guest of one VM claimed and asked for since attach (bpf/scheduler/guest/audit.bpf.h, policy/classify/guest_audit.h). */
struct unspin_guest_audit {
	unspin_u64 boundaries;	  /* ends of slices at which its page was read */
	unspin_u64 claimed;	  /* of them with `critical` above 0 */
	unspin_u64 borrowed;	  /* loans and grants it was told of */
	unspin_u64 overrun;	  /* of them ended by the clock */
	unspin_u64 page_failures; /* its page could not be read, or had no magic */
	unspin_u64 bad_addresses; /* registrations of what is no page of its memory, or not aligned */
	unspin_u64 idle_calls;	  /* gave back without a loan or a grant */
	/* Where rules of candidates are loaded: */
	unspin_u64 sent;       /* interrupts to vCPUs, each once for all its receivers */
	unspin_u64 unanswered; /* receivers off their CPU that had the last of that vCPU and vector still before them */
	unspin_u64 ran_ns;     /* CPU time of its vCPUs */
};
UNSPIN_ASSERT_SIZE(struct unspin_guest_audit, 80);

/* What an object with a user policy says of itself (section .rodata.user), looked at before it is loaded. */
struct unspin_user_policy {
	unspin_u32 contract; /* UNSPIN_POLICY_CONTRACT, policy/contract.h */
	unspin_u32 dry_run;  /* 1: made for a dry run, bpf/scheduler/dry.bpf.c; 0: the scheduler */
	char sources[24];    /* hash of the sources that it was compiled with; ends in 0, as the name does */
	char name[32];
};
UNSPIN_ASSERT_SIZE(struct unspin_user_policy, 64);

/* Why the scheduler ended, as the kernel says; kind 0: it has not. The dump is a map of its own: this is read many times a second. */
struct unspin_steer_exit {
	unspin_u32 kind; /* enum scx_exit_kind, kernel/sched/ext/internal.h, Linux 7.2 */
	unspin_u32 reserved;
	char reason[64];
	char message[1024]; /* SCX_EXIT_MSG_LEN of Linux 7.2 */
};
UNSPIN_ASSERT_SIZE(struct unspin_steer_exit, 1096);

/*
 * What the scheduler was doing when it ended, a text; empty where nothing had gone wrong. The kernel's default (32 KiB,
 * SCX_EXIT_DUMP_DFL_LEN, Linux 7.2) holds some 75 runnable tasks: the kernel writes so much and puts a mark where it had more.
 */
#define UNSPIN_STEER_DUMP_BYTES 1048576

#endif
