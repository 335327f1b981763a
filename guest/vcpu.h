/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * vcpu.h - the state of a vCPU in the micro guest. Included by platform_guest.h only; sources include guest.h.
 *
 * A vCPU's state is one block of VCPU_BYTES with its stacks at the end, found through GS. Fields that other vCPUs write
 * have their own cache lines.
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

/* State that is saved with a task when it is switched out; the running task's is in struct vcpu. */
struct iteration_state {
	struct unspin_guest_wait wait;	       /* the current or last wait */
	unspin_u64 wait_begin_spins;	       /* statistics->spin_count when it began */
	unspin_u64 wait_stolen_ns;	       /* steal time when it began; after wait_end() the time stolen from it */
	unspin_u64 stall_at_spins;	       /* statistics->spin_count at which it becomes a stall; ~0: never */
	unspin_u64 help_at_spins;	       /* ... at which it asks for help; ~0: never */
	unspin_u64 notice_at_spins;	       /* the smaller of the two */
	unspin_u64 random;		       /* state of the random generator */
	unspin_u32 iterations_until_shootdown; /* 1 or more */
	unspin_u32 iterations_until_wakeup;    /* 1 or more */
};

/* task.c */
struct task;

struct vcpu {
	struct vcpu *self; /* this struct: read at GS:0 */
	unspin_u32 number;
	struct task_state task_state;
	unspin_u64 gdt[7];
	struct gate idt[VECTORS];

	struct unspin_guest_statistics *statistics;
	struct unspin_guest_wait *log; /* array of PARAMETERS->log_records */
	struct iteration_state iteration;
	struct task *task;		     /* the running one */
	unspin_u32 spins_until_pause;	     /* until a waiting loop executes PAUSE */
	unspin_u32 iterations_until_pv_page; /* until the pv page is registered again */
	unspin_u32 pv_page_every_iterations; /* 0: this guest has no pv pages */
	unspin_u32 preempt_count;	     /* above 0: tasks are not switched on this vCPU */
	unspin_u32 tasks_left;		     /* tasks that have iterations to do, without the first one */
	unspin_u64 seen_stolen_ns;	     /* steal time that is accounted for (preemption.c) */
	unspin_u64 halt_cycles;		     /* duration of the last HLT */
	unspin_u64 halt_stolen_ns;	     /* time of it in the host's run queue */
	unspin_u64 halt_end_tsc;	     /* when the last HLT ended */
	unspin_u64 halt_end_stolen_ns;	     /* steal time then */
	_Bool by_vmmcall;		     /* 1: hypercalls by AMD's VMMCALL, 0: by Intel's VMCALL */
	_Bool kicks_by_hypercall;	     /* 1: kicks by KVM_HC_KICK_CPU, 0: by IPI */
	_Bool yields_by_hypercall;	     /* 1: the host has KVM_HC_SCHED_YIELD */

	/* Read by other vCPUs when they stall: number of the lock that this one waits for, plus 1; 0: none. */
	unspin_u32 asking __attribute__((aligned(64)));
	/* Written by other vCPUs: shootdowns to answer, one bit for each sender. */
	unspin_u64 inbox __attribute__((aligned(64)));
	/* Counted down by other vCPUs: answers that this vCPU's shootdown still waits for. */
	struct platform_word unanswered __attribute__((aligned(64)));
	/* Incremented by the previous vCPU of the ring: tokens not taken yet (pass_token()). */
	unspin_u32 tokens __attribute__((aligned(64)));
	/*
	 * `parked`, 1: halts until it is woken; read by others. `kicked`, 1: kicked since its last park; set by others.
	 */
	unspin_u32 parked __attribute__((aligned(64)));
	unspin_u32 kicked;
	/* Runnable tasks, one bit each by their place on this vCPU; also set by others. */
	unspin_u32 runnable;
	/* 1: another task shall run as soon as preemption is on; also set by others. */
	unspin_u32 need_switch;
	struct kvm_steal_time steal_time;

	unspin_u8 interrupt_stacks[INTERRUPT_STACKS][INTERRUPT_STACK_BYTES] __attribute__((aligned(64)));
} __attribute__((aligned(64)));
UNSPIN_ASSERT_OFFSET(struct vcpu, task_state.rsp, VCPU_RSP0);
_Static_assert(sizeof(struct vcpu) + 4096 <= VCPU_BYTES, "a vCPU's stack has less than 4 KiB");

/* A vCPU's state and, in the rest of the block, its stack, which grows down from the end. Defined in boot.c. */
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

/*
 * A vCPU's pv page. Not in its block, because the VMM may have mapped pages of the host there (abi/bpf/pv_page_map.h).
 */
static inline struct unspin_pv_page *pv_page_of(unspin_u32 number)
{
	return (struct unspin_pv_page *)UNSPIN_GUEST_PV_PAGE + number;
}

/* The calling vCPU; valid after boot has loaded GS. The asm is not volatile, since the result never changes. */
static inline struct vcpu *this_vcpu(void)
{
	struct vcpu *self;

	__asm__("mov %%gs:0, %0" : "=r"(self));
	return self;
}

/* Constant after boot, except `stop`. */
#define PARAMETERS ((const struct unspin_guest_parameters *)UNSPIN_GUEST_PARAMETERS)

/* All vCPUs of this VM, one bit each. */
static inline unspin_u64 all_vcpus(void)
{
	return ~0ull >> (64u - PARAMETERS->vcpus);
}

/* Whether the VMM has asked the guest to stop; may change at any time. */
static inline _Bool stop_asked(void)
{
	return __atomic_load_n(&PARAMETERS->stop, __ATOMIC_RELAXED) != 0;
}

/* Increments by one instruction, so that a task switch on this vCPU loses no count. */
static inline void count_one(unspin_u64 *counter)
{
	__asm__ volatile("incq %0" : "+m"(*counter) : : "cc");
}

/* Read by observers only, so relaxed; volatile keeps the compiler from moving it. */
static inline void set_state(struct vcpu *self, enum unspin_guest_state state)
{
	*(volatile unspin_u32 *)&self->statistics->state = state;
}

#endif
