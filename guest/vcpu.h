/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * vcpu.h - what the micro guest keeps for each vCPU. Included by platform_guest.h only; sources include guest.h.
 *
 * One vCPU's state is one block of VCPU_BYTES with its stacks at the end, found through GS; what other vCPUs write
 * lies on cache lines of its own.
 */
#ifndef UNSPIN_GUEST_VCPU_H
#define UNSPIN_GUEST_VCPU_H

#include "../abi/guest/memory.h"
#include "../abi/guest/pv_page.h"
#include "machine/layout.h"
#include "machine/x86.h"

/* One stack per interrupt class (IST 1 to 5), so that none can overrun another or the interrupted code's. */
enum interrupt_stack { STACK_NMI, STACK_DOUBLE_FAULT, STACK_TICK, STACK_IPI, STACK_EXCEPTION, INTERRUPT_STACKS };
#define INTERRUPT_STACK_BYTES 1024u

struct task_state {
	unspin_u32 reserved0;
	unspin_u64 rsp[3];
	unspin_u64 reserved1;
	unspin_u64 ist[7];
	unspin_u64 reserved2;
	unspin_u16 reserved3;
	unspin_u16 io_map_offset;
} __attribute__((packed));
UNSPIN_ASSERT_SIZE(struct task_state, 104);

struct gate {
	unspin_u64 low, high;
};

/* What a task takes along when it is switched out; that of the one that runs lies in struct vcpu. */
struct iteration_state {
	struct unspin_guest_wait wait;	       /* the one going on */
	unspin_u64 wait_begin_spins;	       /* statistics->spin_count when it began */
	unspin_u64 wait_stolen_ns;	       /* steal time when it began; from wait_end on, what was stolen of it */
	unspin_u64 stall_at_spins;	       /* statistics->spin_count that make it a stall */
	unspin_u64 help_at_spins;	       /* ... at which it asks for help; ~0: never */
	unspin_u64 notice_at_spins;	       /* the next of the two */
	unspin_u64 random;		       /* state of the generator */
	unspin_u32 iterations_until_shootdown; /* of work */
	unspin_u32 iterations_until_wakeup;    /* of work */
};

/* task.c */
struct task;

struct vcpu {
	struct vcpu *self; /* what GS:0 reads */
	unspin_u32 number;
	struct task_state task_state;
	unspin_u64 gdt[7];
	struct gate idt[VECTORS];

	struct unspin_guest_statistics *statistics;
	struct unspin_guest_wait *log; /* log_records of them */
	struct iteration_state iteration;
	struct task *task;		     /* the one that runs */
	unspin_u32 spins_until_pause;	     /* of waiting loops */
	unspin_u32 iterations_until_pv_page; /* until the pv page is registered once more */
	unspin_u32 pv_page_every_iterations; /* 0: this guest gives no pv pages */
	unspin_u32 preempt_count;	     /* above 0: no other task runs here until it is 0 again */
	unspin_u32 tasks_left;		     /* with iterations to do, the first one left out */
	unspin_u64 seen_stolen_ns;	     /* steal time that is accounted for (preemption.c) */
	unspin_u64 halt_cycles;		     /* of the last HLT */
	unspin_u64 halt_stolen_ns;	     /* of it in the host's run queue */
	unspin_u64 halt_end_tsc;	     /* when it ended */
	unspin_u64 halt_end_stolen_ns;	     /* steal time then */
	_Bool by_vmmcall;		     /* AMD's hypercall instruction, or Intel's */
	_Bool kicks_by_hypercall;	     /* KVM_HC_KICK_CPU, or an IPI */
	_Bool yields_by_hypercall;	     /* KVM_HC_SCHED_YIELD, or none is named */

	/* Read by others when they stall: number of the lock asked for, plus 1; 0: none. */
	unspin_u32 asking __attribute__((aligned(64)));
	/* Written by others: shootdowns to answer, one bit per sender. */
	unspin_u64 inbox __attribute__((aligned(64)));
	/* Counted down by others: answers still missing to the shootdown of this vCPU. */
	struct platform_word unanswered __attribute__((aligned(64)));
	/* Raised by the predecessor: wake-ups not consumed yet. */
	unspin_u32 tokens __attribute__((aligned(64)));
	/* Sleeps in HLT until it is woken; read by others. Kicked since its last park; written by others. */
	unspin_u32 parked __attribute__((aligned(64)));
	unspin_u32 kicked;
	/* Tasks that could run, one bit each by their place on this vCPU; set by others. */
	unspin_u32 runnable;
	/* Another task shall run at the next chance; set by others. */
	unspin_u32 need_switch;
	struct kvm_steal_time steal_time;

	unspin_u8 interrupt_stacks[INTERRUPT_STACKS][INTERRUPT_STACK_BYTES] __attribute__((aligned(64)));
} __attribute__((aligned(64)));
UNSPIN_ASSERT_OFFSET(struct vcpu, task_state.rsp, VCPU_RSP0);
_Static_assert(sizeof(struct vcpu) + 4096 <= VCPU_BYTES, "a vCPU's stack has less than 4 KiB");

/* A vCPU's state and, in the rest of the block, its stack: it grows down from the end. Defined in boot.c. */
union vcpu_block {
	struct vcpu vcpu;
	unspin_u8 bytes[VCPU_BYTES];
} __attribute__((aligned(4096)));
extern union vcpu_block vcpu_blocks[UNSPIN_GUEST_VCPUS_MAX];

/* `number` is below UNSPIN_GUEST_VCPUS_MAX. */
static inline struct vcpu *vcpu_of(unspin_u32 number)
{
	return &vcpu_blocks[number].vcpu;
}

/* What the host reads of it. Outside of its block: the VMM may have put pages of the host's there (abi/bpf/pv_page_map.h). */
static inline struct unspin_pv_page *pv_page_of(unspin_u32 number)
{
	return (struct unspin_pv_page *)UNSPIN_GUEST_PV_PAGE + number;
}

/* The vCPU that runs this; valid once boot has loaded GS. Not volatile: it never changes. */
static inline struct vcpu *this_vcpu(void)
{
	struct vcpu *self;

	__asm__("mov %%gs:0, %0" : "=r"(self));
	return self;
}

/* Constant after boot, but for `stop`. */
#define PARAMETERS ((const struct unspin_guest_parameters *)UNSPIN_GUEST_PARAMETERS)

/* All vCPUs of this VM, one bit each. */
static inline unspin_u64 all_vcpus(void)
{
	return ~0ull >> (64u - PARAMETERS->vcpus);
}

/* Whether the VMM asked to end. It may be set at any time. */
static inline _Bool stop_asked(void)
{
	return __atomic_load_n(&PARAMETERS->stop, __ATOMIC_RELAXED) != 0;
}

/* One instruction, so that no other task of this vCPU counts in between. */
static inline void count_one(unspin_u64 *counter)
{
	__asm__ volatile("incq %0" : "+m"(*counter) : : "cc");
}

/* Only a statement for observers, so relaxed; volatile keeps it where it stands. */
static inline void set_state(struct vcpu *self, enum unspin_guest_state state)
{
	*(volatile unspin_u32 *)&self->statistics->state = state;
}

#endif
