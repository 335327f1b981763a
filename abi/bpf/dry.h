/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* dry.h - what bpf/scheduler/dry.bpf.c counts: decisions about a vCPU, and a candidate where there was one. */
#ifndef UNSPIN_ABI_BPF_DRY_H
#define UNSPIN_ABI_BPF_DRY_H

#include "../types.h"

struct unspin_dry_key {
	unspin_u64 vm; /* tells VMs apart */
	unspin_u32 thread;
	unspin_u32 candidate; /* thread; 0: none, or none that is known */
	unspin_u32 event;     /* enum unspin_policy_event, policy/steering/policies.h */
	unspin_u32 action;    /* enum unspin_action, policy/contract.h */
	unspin_u32 asked;     /* 0: nobody was: no policy is on, or none may touch these vCPUs */
	unspin_u32 reserved;
};
UNSPIN_ASSERT_SIZE(struct unspin_dry_key, 32);

struct unspin_dry_count {
	unspin_u64 count;
	unspin_u32 process;
	unspin_u32 vcpu;	   /* KVM's number */
	unspin_u32 candidate_vcpu; /* the same of the candidate, if there is one */
	unspin_u32 reserved;
};
UNSPIN_ASSERT_SIZE(struct unspin_dry_count, 24);

/* What found no room. */
struct unspin_dry_losses {
	unspin_u64 threads; /* entries of vCPU threads that are not followed */
	unspin_u64 answers; /* that are not counted */
};
UNSPIN_ASSERT_SIZE(struct unspin_dry_losses, 16);

#endif
