/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * state.bpf.h - what the scheduler keeps of tasks, CPUs and cgroups, and its counters.
 */
#ifndef UNSPIN_BPF_SCHEDULER_STATE_H
#define UNSPIN_BPF_SCHEDULER_STATE_H

#include "kernel.bpf.h"

#include "../../abi/guest/pv_page.h"
#include "../../abi/bpf/scheduler.h"
#include "../../policy/classify/spin_samples.h"
#include "../../policy/mechanics/crowd.h"
#include "../../policy/mechanics/gang.h"
#include "../../policy/mechanics/slice.h"
#include "../../policy/mechanics/starvation_bound.h"
#include "../../policy/mechanics/wakeup.h"
#include "../../policy/steering/policies.h"

#define barrier() asm volatile("" ::: "memory")

/* A pause-loop exit: its rule of candidates is called once. SAMPLED: there was none, but its guest spins (yield/samples.bpf.h). */
enum on_spin { ON_SPIN_OVER, ON_SPIN_BEGUN, ON_SPIN_WALKED, ON_SPIN_SAMPLED };

#define PUBLISHED 1u

/* A vCPU's slice, or its extra time, is over. */
enum boundary {
	BOUNDARY_REACHED = 1,
	BOUNDARY_CRITICAL = 2, /* in a critical section, and a task waits (ruling 22) */
};

/*
 * Marks that spinners of its VM set for a vCPU while it is off its CPU (policy/steering/candidate.h), by number of the vCPU; any of
 * them may change it. Valid while left_ns is the vCPU's: one that has run since has no mark.
 */
struct pending_ipi {
	u64 left_ns;
	u64 sent_by;   /* that sent it an IPI since */
	u64 sent_ns;   /* the last of these */
	u64 passed_by; /* strict: that passed it over */
	u32 vector;    /* of that IPI */
	u32 eligible;  /* passed over as a lock waiter */
};

/* A task that wakes up. */
enum placed {
	NOT_PLACED,
	PLACED,		   /* where it waits: it is not placed again */
	PLACED_TO_PREEMPT, /* the same, and it may run at once on the CPU that was chosen for it */
};

/* One task. Changed under the lock of its run queue only, but for debt_ns (atomic) and what the vCPU's own thread does. */
struct task_context {
	u64 vtime_ns;		/* weighted; what the queues are ordered by */
	u64 charged_ns;		/* sum_exec_runtime up to which it has been charged */
	u64 charged_at_ns;	/* when that was */
	u64 effective;		/* its weight among all, as of then (policy/mechanics/weights.h); 1 or more */
	u64 debt_ns;		/* run by others at its charge, not in vtime_ns yet */
	u64 lag_ns;		/* with which it went to sleep (policy/mechanics/wakeup.h) */
	u64 slept_ns;		/* sum_exec_runtime when it did */
	u32 burst_ns;		/* how long it is expected to run when it wakes up: a slice at most */
	u32 mean_ns;		/* how long its runs are in the mean: a slice at most */
	u64 throttled_since_ns; /* 0: it is not throttled, or has run since */
	u32 placed;		/* enum placed */
	u64 slice_end_ns;
	u64 queue;	 /* where it was inserted last */
	u32 group;	 /* index of `groups` */
	u32 weight;	 /* in its group: policy/mechanics/weights.h */
	u32 counted;	 /* of it in the sum of its group: the weight while runnable, else 0 */
	u32 home;	 /* the queue whose clock its vtime follows (policy/mechanics/virtual_time.h) */
	u32 payer;	 /* thread that is charged for this slice; 0: itself */
	u32 lender;	 /* thread that continues after this one's loan; 0: none */
	u32 prepared;	 /* the slice's fields above are set: running() leaves them */
	u32 borrow_kind; /* enum unspin_borrow_kind */
	u32 budget_ns;
	u64 borrowed_since_ns;
	u64 borrow_charged_ns; /* sum_exec_runtime when it began to borrow */
	u32 yielding;	       /* gives its CPU to the task that is next */
	u32 alone;	       /* runs until another task comes: no tick ends its slice */
	u32 leaves;	       /* its slice is over, and it runs up to the next entry to its guest */
	u32 announced;	       /* it was reported to user space: only_vms/threads.bpf.h, as the next two */
	u32 inherits;	       /* it has its policy from the thread that is creating it */
	u32 hands_over;	       /* in its last run it woke one task as it was about to sleep, and slept */
	u32 idle_cpu;	       /* it wakes up on that CPU, plus 1, which was idle; 0: on none that was */
	/* A vCPU's, from here on; vcpu is 0 for other tasks. */
	u32 steered;			   /* policies may touch it */
	struct unspin_steer_choice choice; /* these */
	u32 choice_seen;		   /* `policy_changes` as of then */
	u32 uses_locks;			   /* as of its slice's beginning (policy/steering/slice.h) */
	u64 lock_ns;			   /* when it was last seen to use locks (as above); 0: never */
	u32 answer_slices;		   /* of its own, in which it waits for answers (as above) */
	u64 sent_to;	   /* vCPUs, by number, that it sent an IPI which is waited for while they waited for a CPU */
	u64 vcpu;	   /* struct kvm_vcpu *, followed by safe reads only */
	u64 vm;		   /* struct kvm *: a number here */
	u64 vm_generation; /* `destroyed` when vcpu was learned */
	u64 pv_page;	   /* host address of its struct unspin_pv_page; 0: none registered */
	u64 offer;	   /* by which that lies in `guest_pages`, too; 0: it does not */
	u32 slot;	   /* where in there */
	u64 left_ns;	   /* when it left its CPU */
	u64 yielded_ns;	   /* when it last gave its CPU away; 0: never */
	struct unspin_fact critical, sections, mode; /* as of left_ns; age_ns is 0 or UNSPIN_AGE_UNKNOWN */
	u32 on_cpu;
	u32 spun;
	u32 give_back;	      /* the guest requested it by a hypercall */
	u32 borrowed_is_set;  /* the guest's `borrowed` word is set */
	u32 disclosure;	      /* enum unspin_disclosure: how much the guest is notified of */
	u32 published;	      /* PUBLISHED, and its vcpu_preempted << 1 and pcpu_overloaded << 2; 0: not known */
	u32 overloaded;	      /* a task waits that could run on its CPU, as of its slice's beginning or the last tick */
	u32 by_class;	      /* the guest counts sections by eCS's counters: one was seen above 0 */
	u32 boundary;	      /* bits of enum boundary */
	u32 silent;	      /* a grant that the guest is not notified of and that no policy polls: EXTEND */
	u64 watched_ns;	      /* borrowed_since_ns for which the timer was set */
	u32 asks;	      /* the guest called for help by a hypercall */
	u32 names;	      /* the guest has named the vCPU that KVM proposes next: KVM_HC_SCHED_YIELD */
	u32 page;	      /* of a thread that is no vCPU: its number in `thread_pages`, plus 1; 0: none */
	u32 acknowledge;      /* the guest has registered its page, which is still to be acknowledged */
	u64 unheard_until_ns; /* until then its calls for help are ignored */
	u64 called_until_ns;  /* until then it is about to run for one that called for help, or spun */
	u32 number;	      /* of the vCPU in its VM: vcpu_idx */
	u32 on_spin;	      /* enum on_spin: KVM handles such an exit of it, or as if */
	u32 waited;	      /* it lost its CPU at a place where its guest waits; known where it may be sampled */
	u64 sample_ns;	      /* when it is sampled next; 0: not */
	struct unspin_spin_samples samples;
	u32 spins;	      /* it left its CPU for one: a lock waiter */
	u32 halted;	      /* it left its CPU asleep */
	u64 sent, unanswered; /* of struct unspin_guest_audit, since it was charged last */
	struct pending_ipi pending_ipi;
	struct unspin_policy_memory memory;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_context);
} tasks SEC(".maps");

/* A task with short runs that waited when it was noted (waits/crowd.bpf.h). */
struct note_of_share {
	u64 position_ns;
	u32 thread;
};

/* One CPU; used by that CPU with interrupts off, but for flags and online. */
struct cpu_context {
	struct bpf_timer timer; /* ends loans and grants */
	u32 flags;		/* enum unspin_steer_cpu, set before attach */
	u32 offline;
	/* Where only VMs are ours: only_vms/taken_cpus.bpf.h. */
	u32 taken;	 /* a task of another class runs here */
	u32 movable;	 /* a task that may run elsewhere waits in its queue */
	u64 now_ns;	 /* the clock of its queue: policy/mechanics/virtual_time.h */
	u64 offset_ns;	 /* to the shared queue's */
	u64 front_ns;	 /* the position of the last one that was first here */
	u64 standing_ns; /* of its queue, among domains: unspin_own_standing() */
	/* The task that runs here, for tasks that wake up; other CPUs read it while it changes, and preempt too early or too late. */
	u64 runner_ns;	     /* its position */
	u64 runner_since_ns; /* when it was there */
	u64 runner_weight;   /* effective; 0: it is not preempted by a wake-up */
	u64 ran_ns;	     /* time for which tasks ran here */
	u64 shared_ran_ns;   /* of that, what its domain's fair clock has gone on by */
	u64 counted_ns;	     /* when the tasks that wait for it were counted */
	u32 crowd;	     /* they were a crowd */
	u32 notes;
	u32 written;				       /* notes, so far: unspin_note_slot() */
	struct note_of_share note[UNSPIN_CROWD_NOTES]; /* in no order; so many are valid; with the run queue locked */
	struct unspin_clock_rate rate;
	u64 slice_timer_ns;    /* when the timer of slice_timers fires; 0: it is not armed */
	u32 slice_timer_ready; /* that is made */
	u32 behind;	       /* a task that waits here is too far ahead: check again */
	/* Of the task that runs here: whom it has woken while it was about to sleep (scheduler/waits/heir.bpf.h). */
	u32 has_woken; /* so many */
	u32 heir;      /* thread; 0: none, or several */
	u64 heir_ns;
	u64 dispatched_ns; /* when the queues were looked at last */
	/* The thread that runs next, ahead of the queues. */
	u32 next; /* 0: none in particular */
	u32 next_payer;
	u32 next_lender;
	u32 next_borrow_kind; /* enum unspin_borrow_kind */
	u32 next_budget_ns;
	u32 next_returns; /* it is a lender that continues its slice */
	u64 next_slice_end_ns;
	u64 next_until_ns; /* after that it is not taken up any more */
	u32 next_is_buddy; /* it begins a slice of its own, unless that is too unfair (scheduler/yield/buddy.bpf.h) */
	u32 next_threshold_ns;
	u32 next_credit_ns;
	/* What runs here and what is called here, for gangs (scheduler/yield/gang.bpf.h): other CPUs read the first and write the second. */
	struct unspin_gang_place runs;
	u64 called_until_ns;
	u32 called; /* thread; 0: none */
	u32 called_threshold_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: possible CPUs */
	__type(key, u32);
	__type(value, struct cpu_context);
} cpus SEC(".maps");

struct {
	__uint(type, STEER_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unspin_steer_counters);
} counters SEC(".maps");

/* Processes that policies touch, when not everyone is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} steered_processes SEC(".maps");

/* struct unspin_decision_record, when options.log_decisions is 1. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes; set by the loader */
} decisions SEC(".maps");

/* In a section of its own: the constants of a user's policy make .rodata. */
const volatile struct unspin_steer_options options SEC(".rodata.options");
#ifdef UNSPIN_STEER_DRY
#define CONTROL_SECTION ".data.dry"
#define CHANGES_SECTION ".data.dry_change"
#define vm_policies dry_vm_policies
#else
#define CONTROL_SECTION ".data.unspin" /* maps found by these names, and vm_policies below */
#define CHANGES_SECTION ".data.changes"
#endif
volatile struct unspin_steer_control control SEC(CONTROL_SECTION);
/* Another number after each change of `control` and of `vm_policies`. */
volatile u32 policy_changes SEC(CHANGES_SECTION) = 1;

/* VMs that have policies of their own, by process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* one that is replaced is whole for those who read it */
	__uint(max_entries, UNSPIN_STEER_VMS_MAX);
	__type(key, u32);
	__type(value, struct unspin_steer_vm);
} vm_policies SEC(".maps");

u64 destroyed; /* VMs destroyed so far: pointers learned before are looked up again */

static __always_inline void count(enum unspin_steer_counter which, u64 amount)
{
	u32 zero = 0;
	struct unspin_steer_counters *of = bpf_map_lookup_elem(&counters, &zero);

	/* In bounds: every caller's `which` is a constant of the enum. */
	if (of)
		of->of[which] += amount;
}

static __always_inline struct task_context *context_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, NULL, 0);
}

static __always_inline struct cpu_context *cpu_of(u32 cpu)
{
	/* In bounds: the array map refuses an index beyond its end. */
	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* ns; not of a slice that is passed on */
static __always_inline u64 slice_of(const struct task_context *task)
{
	if (!task->steered)
		return options.slice_ns;
	return policies_length_of_slice(task->choice.policies, task->choice.slice_ns, options.slice_ns,
					task->uses_locks);
}

#endif
