/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * x86.h - instructions that C cannot express, and their constants (Intel SDM volume 3, AMD APM volume 2; KVM's from the
 * Linux kernel's Documentation/virt/kvm/x86/msr.rst and cpuid.rst).
 */
#ifndef UNSPIN_GUEST_X86_H
#define UNSPIN_GUEST_X86_H

#include "../../abi/types.h"

#define MSR_APIC_BASE 0x1bu
#define APIC_BASE_X2APIC 0x400u
#define APIC_BASE_ENABLED 0x800u
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_SYSCALL_MASK 0xc0000084u
#define MSR_GS_BASE 0xc0000101u
#define MSR_X2APIC_TPR 0x808u
#define MSR_X2APIC_EOI 0x80bu
#define MSR_X2APIC_SPURIOUS 0x80fu
#define MSR_X2APIC_ICR 0x830u
#define MSR_X2APIC_LVT_TIMER 0x832u
#define MSR_X2APIC_LVT_LINT0 0x835u
#define MSR_X2APIC_TIMER_COUNT 0x838u
#define MSR_X2APIC_TIMER_DIVIDE 0x83eu
#define APIC_SOFTWARE_ENABLED 0x100u
#define APIC_LVT_MASKED 0x10000u
#define APIC_TIMER_PERIODIC 0x20000u
#define APIC_TIMER_DIVIDE_BY_1 0xbu
#define APIC_ICR_ALL_BUT_SELF 0xc0000u

#define CPUID_KVM_SIGNATURE 0x40000000u
#define CPUID_KVM_FEATURES 0x40000001u
#define CPUID_HYPERVISOR_TIMING                                                                                        \
	0x40000010u /* EAX: TSC frequency, kHz; VMware's leaf, which other hypervisors have too */
#define KVM_FEATURE_STEAL_TIME 0x20u
#define KVM_FEATURE_PV_UNHALT 0x80u
#define KVM_FEATURE_PV_SCHED_YIELD 0x2000u
#define KVM_HC_KICK_CPU 5u     /* RBX: flags, 0; RCX: APIC id */
#define KVM_HC_SCHED_YIELD 11u /* RBX: APIC id */
#define MSR_KVM_STEAL_TIME 0x4b564d03u
#define KVM_MSR_ENABLED 1u
#define KVM_VCPU_PREEMPTED 1u

/* struct kvm_steal_time of the Linux kernel's arch/x86/include/uapi/asm/kvm_para.h, written by the host. */
struct kvm_steal_time {
	unspin_u64 steal_ns;
	unspin_u32 version; /* odd while the host writes */
	unspin_u32 flags;
	unspin_u8 preempted; /* KVM_VCPU_PREEMPTED: the vCPU's thread is not running */
	unspin_u8 padding[47];
} __attribute__((aligned(64)));
UNSPIN_ASSERT_SIZE(struct kvm_steal_time, 64);

/* The frame that the CPU pushes at an interrupt in 64-bit mode. */
struct interrupt_frame {
	unspin_u64 rip, cs, rflags, rsp, ss;
};

struct cpuid {
	unspin_u32 eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid(unspin_u32 leaf)
{
	struct cpuid result;

	__asm__ volatile("cpuid"
			 : "=a"(result.eax), "=b"(result.ebx), "=c"(result.ecx), "=d"(result.edx)
			 : "a"(leaf), "c"(0));
	return result;
}

/* A KVM hypercall (Documentation/virt/kvm/x86/hypercalls.rst) by AMD's or Intel's instruction; returns its result. */
static inline unspin_u64 hypercall(_Bool by_vmmcall, unspin_u64 number, unspin_u64 argument0, unspin_u64 argument1)
{
	unspin_u64 answer;

	if (by_vmmcall)
		__asm__ volatile("vmmcall" : "=a"(answer) : "a"(number), "b"(argument0), "c"(argument1) : "memory");
	else
		__asm__ volatile("vmcall" : "=a"(answer) : "a"(number), "b"(argument0), "c"(argument1) : "memory");
	return answer;
}

static inline unspin_u64 rdmsr(unspin_u32 msr)
{
	unspin_u32 low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
	return (unspin_u64)high << 32 | low;
}

static inline void wrmsr(unspin_u32 msr, unspin_u64 value)
{
	__asm__ volatile("wrmsr" : : "c"(msr), "a"((unspin_u32)value), "d"((unspin_u32)(value >> 32)) : "memory");
}

/* The time-stamp counter. Not serialising: the CPU may reorder it with a few neighbouring instructions. */
static inline unspin_u64 rdtsc(void)
{
	unspin_u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (unspin_u64)high << 32 | low;
}

static inline void interrupts_off(void)
{
	__asm__ volatile("cli" : : : "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("sti" : : : "memory");
}

/*
 * Called with interrupts off: halts until an interrupt comes, handles it and returns with interrupts off. STI takes
 * effect after the next instruction, so an interrupt that is already pending ends the HLT: no wake-up is lost.
 */
static inline void halt_until_interrupt(void)
{
	__asm__ volatile("sti\n\thlt\n\tcli" : : : "memory");
}

#endif
