/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * pv_page.h - what a cooperating guest publishes to its host about each vCPU: one struct in guest memory. Only that vCPU writes it,
 * except for the words named below; the host's BPF programs read it while they run on the vCPU's thread.
 *
 * A vCPU registers its struct by a hypercall that KVM does not implement: KVM returns -KVM_ENOSYS, which the guest ignores, and
 * programs at the tracepoint kvm_hypercall see the call. Some registrations are missed, so the guest repeats them until the host
 * writes UNSPIN_PV_PAGE_MAGIC into `acknowledged`, and rarely from then on, since the scheduler may be replaced: the new one clears
 * the word first. An observer writes nothing. Without any program a registration has no effect. RAX: UNSPIN_HYPERCALL_REGISTER_PV_PAGE; RBX
 * (KVM's first argument): guest-physical address of the struct, which lies within one page.
 *
 * Borrowed time: a host that lets this vCPU run on time that is not its own sets `borrowed` before it enters the guest. A vCPU that
 * finds it set when `critical` and eCS's two counters have become 0 clears it and makes the hypercall UNSPIN_HYPERCALL_GIVE_BACK
 * (RAX; no argument): it then leaves its CPU at once. A vCPU that does not is descheduled when the loan's time is up, 1 ms.
 *
 * UNSPIN_HYPERCALL_HELP (RAX; no argument) means that this vCPU waits unusually long for a lock, and nothing else: the host
 * chooses which vCPU to run instead, if any (Friebel 2008, "Helping locks"; policy/steering/helping.h). It is valid in the guest's
 * kernel mode only and needs no registration. A guest may make it at any rate: it costs its own time.
 *
 * eCS (Kashyap, Min and Kim, ATC 2018, Figure 2) has two counters of critical sections in this page and two words from the
 * host; rulings 23 and 24. One further counter for each class distinguishes the sections. The preemptable ones belong to
 * the guest task that runs: they are saved and put back when tasks are switched.
 *
 * The host chooses for each VM what it writes (`unspin steer --disclose`): nothing; what concerns the vCPU
 * itself (`acknowledged`, `borrowed`, `vcpu_preempted`, `spin_count`), which is the default; or all. `pcpu_overloaded` is information about
 * the guest's neighbours, also while they take no time from it, which steal time is not: a host writes it for trusted guests only.
 * Otherwise it stays 0.
 *
 * `spin_count` is APPLE's, where it acts on guests in place of the pause-loop window (policy/model/spin_threshold.h): the waits that end
 * a VM's epochs are its own, so it has no information about neighbours either.
 *
 * A pv page is a claim, never a fact: a false one may lead to wrong decisions about that guest, and no other. Nor does a guest rely
 * on what the host wrote: a lock that reads it is correct with any value.
 */
#ifndef UNSPIN_ABI_GUEST_PV_PAGE_H
#define UNSPIN_ABI_GUEST_PV_PAGE_H

#include "../types.h"

#define UNSPIN_HYPERCALL_REGISTER_PV_PAGE 0x554e0001u
#define UNSPIN_HYPERCALL_GIVE_BACK 0x554e0002u
#define UNSPIN_HYPERCALL_HELP 0x554e0003u
#define UNSPIN_PV_PAGE_MAGIC 0x544e4948u /* "HINT" */

/* What a vCPU spins for. */
enum unspin_pv_page_waiting {
	UNSPIN_PV_PAGE_NOT_WAITING = 0,
	UNSPIN_PV_PAGE_WAITS_FOR_LOCK = 1,
	UNSPIN_PV_PAGE_WAITS_FOR_ANSWERS = 2, /* to an IPI that it sent */
};

/* Kinds of critical sections that are counted each for itself (ruling 23): those of struct unspin_ecs_counters, in its order. */
enum unspin_section_class {
	UNSPIN_SECTION_SPIN = 0,
	UNSPIN_SECTION_RWLOCK_WRITE = 1,
	UNSPIN_SECTION_RWLOCK_READ = 2,
	UNSPIN_SECTION_RCU = 3,
	UNSPIN_SECTION_INTERRUPT = 4,
	UNSPIN_SECTION_MUTEX = 5,
	UNSPIN_SECTION_RWSEM_WRITE = 6,
	UNSPIN_SECTION_RWSEM_READ = 7,
	UNSPIN_SECTION_CLASSES = 8,
};

struct unspin_pv_page {
	unspin_u32 magic;	 /* UNSPIN_PV_PAGE_MAGIC */
	unspin_u32 critical;	 /* locks asked for or held: raised before asking, lowered after unlock */
	unspin_u32 holding;	 /* of them held */
	unspin_u32 waiting;	 /* enum unspin_pv_page_waiting */
	unspin_u64 lock;	 /* of the lock asked for or held last: any number that names it within the VM */
	unspin_u64 targets;	 /* while waiting for answers: who was asked, one bit for each of the first 64 vCPUs */
	unspin_u64 asked_tsc;	 /* when the wait began */
	unspin_u32 borrowed;	 /* written by the host: 1: give the CPU back once nothing is critical any more */
	unspin_u32 acknowledged; /* written by the host: UNSPIN_PV_PAGE_MAGIC once it has seen the registration */
	unspin_u32
		non_preemptable_ecs_count; /* sections that no guest task can be switched in: spin, rwlock, RCU, interrupt */
	unspin_u32 preemptable_ecs_count; /* mutex and rwsem sections of the task that runs */
	unspin_u32
		vcpu_preempted; /* by the host: 1 when its thread leaves its pCPU in KVM_RUN, 0 before its guest is entered */
	unspin_u32 pcpu_overloaded; /* written by the host: 1: another runnable task could run on this pCPU now */
	unspin_u32 class_count[UNSPIN_SECTION_CLASSES];
	unspin_u32
		spin_count; /* written by the host: spins of a waiting loop before this vCPU halts or calls for help; 0: its own */
	unspin_u32 reserved[7];
};
UNSPIN_ASSERT_SIZE(struct unspin_pv_page, 128);
UNSPIN_ASSERT_OFFSET(struct unspin_pv_page, borrowed, 40);
UNSPIN_ASSERT_OFFSET(struct unspin_pv_page, spin_count, 96);

/*
 * Arguments of UNSPIN_EVENT_PV_PAGE. argument0: `critical` (bits 0..7), `holding` (8..15) and `waiting` (16..23), each stopping
 * at 255; argument1: `targets` while waiting for answers, otherwise `lock`; argument2: `asked_tsc`.
 */
#define UNSPIN_PV_PAGE_CRITICAL_SHIFT 0
#define UNSPIN_PV_PAGE_HOLDING_SHIFT 8
#define UNSPIN_PV_PAGE_WAITING_SHIFT 16

#endif
