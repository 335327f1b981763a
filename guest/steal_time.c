/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* steal_time.c - KVM's steal-time page: how long each vCPU was runnable but not run, and its `preempted` flag. */
#include "guest.h"

/* Registers this vCPU's page, if KVM offers one (park_start()); else times, flags and statistics->steal_time stay 0. */
void steal_time_register(struct vcpu *self)
{
	wrmsr(MSR_KVM_STEAL_TIME, (unspin_u64)&self->steal_time | KVM_MSR_ENABLED);
	self->statistics->steal_time = 1;
}

/*
 * Time that the vCPU was runnable and not run, ns. Read again until the host's version is even and unchanged around it.
 */
unspin_u64 steal_time_ns(const struct vcpu *self)
{
	const volatile struct kvm_steal_time *page = &self->steal_time;
	unspin_u32 version;
	unspin_u64 steal_ns;

	do {
		version = page->version;
		steal_ns = page->steal_ns;
	} while ((version & 1) != 0 || page->version != version);
	return steal_ns;
}

/* The vCPUs that are preempted according to KVM, one bit each; may be out of date. */
unspin_u64 steal_time_preempted(void)
{
	unspin_u64 preempted = 0;

	for (unspin_u32 i = 0; i < PARAMETERS->vcpus; i++) {
		unspin_u8 flags = *(const volatile unspin_u8 *)&vcpu_of(i)->steal_time.preempted;

		preempted |= (unspin_u64)(flags & KVM_VCPU_PREEMPTED) << i;
	}
	return preempted;
}
