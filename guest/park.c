/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * park.c - halting a vCPU until it is kicked, and the hypercalls of waiters (locks/platform/contract.h).
 *
 * A kick sets the word `kicked` and then wakes the vCPU if it is parked: by KVM_HC_KICK_CPU where CPUID offers it
 * (kvm_pv_kick_cpu_op() of Linux 7.2, which also ends a HLT that begins later), by an IPI elsewhere and after the first
 * refusal. The word keeps a kick that comes before the HLT, so no kick is lost even if KVM forgets it.
 */
#include "guest.h"

static struct cpuid kvm_features(void)
{
	struct cpuid signature = cpuid(CPUID_KVM_SIGNATURE);

	if (signature.ebx != 0x4b4d564b || signature.ecx != 0x564b4d56 || signature.edx != 0x4d) /* "KVMKVMKVM" */
		return (struct cpuid){0};
	return cpuid(CPUID_KVM_FEATURES);
}

/* Called once, before the first lock: finds out the hypercalls, their instruction and the TSC's frequency. */
void park_start(struct vcpu *self)
{
	struct cpuid maker = cpuid(0);
	unspin_u32 features = kvm_features().eax;

	/* "AuthenticAMD" and "HygonGenuine" have VMMCALL, other CPUs VMCALL. */
	self->by_vmmcall = maker.ebx == 0x68747541 || maker.ebx == 0x6f677948;
	self->kicks_by_hypercall = (features & KVM_FEATURE_PV_UNHALT) != 0;
	self->yields_by_hypercall = (features & KVM_FEATURE_PV_SCHED_YIELD) != 0;
	if (cpuid(CPUID_KVM_SIGNATURE).eax >= CPUID_HYPERVISOR_TIMING)
		self->statistics->tsc_khz = cpuid(CPUID_HYPERVISOR_TIMING).eax;
	if (features & KVM_FEATURE_STEAL_TIME)
		steal_time_register(self);
}

/* Ends the HLT of a vCPU; its number is its APIC id. After one refused hypercall IPIs are used. */
void vcpu_wake(struct vcpu *self, unspin_u32 target)
{
	unspin_u64 number = PARAMETERS->fault_injection == UNSPIN_FAULT_REFUSED_KICK ? ~0u : KVM_HC_KICK_CPU;

	self->statistics->kicks++;
	if (self->kicks_by_hypercall) {
		if (hypercall(self->by_vmmcall, number, 0, target) == 0)
			return;
		self->statistics->kicks_refused++;
		self->kicks_by_hypercall = 0;
	}
	apic_send(target, VECTOR_WAKE);
}

/*
 * One HLT: called with interrupts off, returns with interrupts off. Time stolen meanwhile is no preemption, so it is
 * excluded from the ground truth of preemptions.
 */
void vcpu_halt(struct vcpu *self)
{
	unspin_u32 before = self->statistics->state;
	unspin_u64 begin = rdtsc(), stolen = steal_time_ns(self);

	preemption_poll(self);
	set_state(self, UNSPIN_STATE_HALTED);
	halt_until_interrupt();
	set_state(self, before);
	self->halt_end_tsc = rdtsc();
	self->halt_cycles = self->halt_end_tsc - begin;
	self->halt_stolen_ns = steal_time_ns(self) - stolen;
	self->halt_end_stolen_ns = stolen + self->halt_stolen_ns;
	self->seen_stolen_ns = self->halt_end_stolen_ns;
}

/* As platform_park(). The exchange is ordered: either vcpu_kick() sees `parked`, or the kick is seen here. */
void vcpu_park(const struct platform_word *word, unspin_u32 value)
{
	struct vcpu *self = this_vcpu();

	interrupts_off();
	__atomic_exchange_n(&self->parked, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&self->kicked, __ATOMIC_ACQUIRE) && platform_load_acquire(word) == value) {
		count_spin(self);
		self->statistics->lock_halts++;
		vcpu_halt(self);
		self->statistics->lock_parked_cycles += self->halt_cycles;
		self->statistics->lock_parked_stolen_ns += self->halt_stolen_ns;
	}
	__atomic_store_n(&self->parked, 0, __ATOMIC_RELAXED);
	__atomic_exchange_n(&self->kicked, 0, __ATOMIC_SEQ_CST);
	interrupts_on();
}

/* As platform_kick(). A number that is no vCPU of this VM is ignored. */
void vcpu_kick(unspin_u32 waiter)
{
	struct vcpu *target;

	if (waiter >= PARAMETERS->vcpus)
		return;
	target = vcpu_of(waiter);
	__atomic_exchange_n(&target->kicked, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&target->parked, __ATOMIC_ACQUIRE))
		vcpu_wake(this_vcpu(), waiter);
}

/* Friebel 2008, "Helping locks": names no vCPU; the host chooses which one runs. */
void vcpu_asks_for_help(struct vcpu *self)
{
	self->statistics->helps++;
	(void)hypercall(self->by_vmmcall, UNSPIN_HYPERCALL_HELP, 0, 0);
}

/*
 * Ours: asks the host to run `waiter` in place of this vCPU. The same as vcpu_asks_for_help() if the host has no such
 * hypercall or the number is no vCPU.
 */
void vcpu_asks_for(unspin_u32 waiter)
{
	struct vcpu *self = this_vcpu();

	if (!self->yields_by_hypercall || waiter >= PARAMETERS->vcpus) {
		vcpu_asks_for_help(self);
		return;
	}
	self->statistics->named_yields++;
	(void)hypercall(self->by_vmmcall, KVM_HC_SCHED_YIELD, waiter, 0);
}

/* As platform_is_preempted(): by KVM's steal-time page, or by what a host wrote into the pv page. Any number. */
_Bool vcpu_is_preempted(unspin_u32 waiter)
{
	const struct vcpu *other;

	if (waiter >= PARAMETERS->vcpus)
		return 0;
	other = vcpu_of(waiter);
	return (*(const volatile unspin_u8 *)&other->steal_time.preempted & KVM_VCPU_PREEMPTED) != 0 ||
	       *(const volatile unspin_u32 *)&pv_page_of(waiter)->vcpu_preempted != 0;
}
