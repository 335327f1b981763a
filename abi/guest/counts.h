/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * counts.h - what a module in an unmodified Linux guest publishes to its host for each CPU: the addresses of the kernel's own counts. A
 * kernel with preemption counting keeps in __preempt_count what eCS counts by annotation (ruling 26): spinlocks, reader-
 * writer locks, soft and hard interrupts; readers of preemptible RCU are counted in the task. Read by the host while that
 * vCPU's thread is current, in place of struct unspin_pv_page (abi/guest/pv_page.h), which counts where a guest has both.
 *
 * A CPU registers its struct by a hypercall that KVM does not implement, as in pv_page.h. RAX: UNSPIN_HYPERCALL_REGISTER_COUNTS; RBX:
 * guest-physical address of the struct, which lies within one page. It is repeated until the host writes UNSPIN_COUNTS_MAGIC
 * into `acknowledged`, and rarely from then on; a host that finds another value in `magic` (the module was unloaded) takes the
 * counts for unknown.
 *
 * All of it is a claim. Addresses are guest-physical and looked up in that VM's memory slots, never used as they are: a false
 * one leads to wrong decisions about that guest, and no other.
 */
#ifndef UNSPIN_ABI_GUEST_COUNTS_H
#define UNSPIN_ABI_GUEST_COUNTS_H

#include "../types.h"

#define UNSPIN_HYPERCALL_REGISTER_COUNTS 0x554e0010u
#define UNSPIN_COUNTS_MAGIC 0x53544e43u /* "CNTS" */
/* Fields of a task_struct lie below: Linux 7.2's has 9 KiB. */
#define UNSPIN_COUNTS_OFFSET_MAX 0x8000u

struct unspin_counts {
	unspin_u32 magic;	  /* UNSPIN_COUNTS_MAGIC */
	unspin_u32 acknowledged;  /* written by the host: UNSPIN_COUNTS_MAGIC once it has seen the registration */
	unspin_u64 preempt_count; /* guest-physical address of this CPU's __preempt_count, 4 bytes */
	unspin_u64 current_task;  /* guest-physical address of this CPU's current_task, a guest-virtual pointer */
	unspin_u64 direct_map;	  /* guest-virtual address of guest-physical 0 */
	unspin_u64 direct_map_bytes;
	unspin_u32 rcu_nesting; /* offset in task_struct of rcu_read_lock_nesting; 0: RCU readers cannot be preempted */
	unspin_u32 task_flags;	/* offset in task_struct of flags */
	unspin_u32 sleeping; /* written at any time by the module: mutexes and rwsems that current asks for or holds */
	unspin_u32 hooks;    /* 1: `sleeping` is counted */
};
UNSPIN_ASSERT_SIZE(struct unspin_counts, 56);
UNSPIN_ASSERT_OFFSET(struct unspin_counts, acknowledged, 4);

#endif
