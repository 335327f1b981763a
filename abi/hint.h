/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * hint.h - what a guest that cooperates tells its host about each vCPU: one struct in guest memory, written by that vCPU
 * alone but for `borrowed`, read by the host's BPF programs while they run on its thread.
 *
 * A vCPU registers its struct by a hypercall that KVM does not know: KVM answers -KVM_ENOSYS, the guest ignores that, and
 * the tracepoint kvm_hypercall tells whoever watches. Some registrations are missed, and a watcher may come later, so the
 * guest repeats them now and then. Where nobody watches they do nothing. RAX: UNSPIN_HYPERCALL_REGISTER_HINT; RBX (KVM's
 * first argument): guest-physical address of the struct, which lies within one page.
 *
 * The way back is one word: a host that lets this vCPU run on time that is not its own sets `borrowed` before it enters the
 * guest. Whoever finds it set when `critical` has become 0 clears it and says UNSPIN_HYPERCALL_GIVE_BACK (RAX; no argument):
 * the vCPU then leaves its CPU at once. A guest that does not is taken off when the loan's time is up, 1 ms.
 *
 * UNSPIN_HYPERCALL_HELP (RAX; no argument) says that this vCPU waits unusually long for a lock, and nothing else: the host
 * chooses whom to run instead, if anybody (Friebel 2008, "Helping locks"; policy/helping.h). It counts in the guest's kernel
 * mode only and needs no registration. A guest may say it as often as it likes: the time is its own.
 *
 * A hint is a claim, never a fact: a host that believes a lie may judge that guest wrongly, and nobody else.
 */
#ifndef UNSPIN_ABI_HINT_H
#define UNSPIN_ABI_HINT_H

#include "types.h"

#define UNSPIN_HYPERCALL_REGISTER_HINT 0x554e0001u
#define UNSPIN_HYPERCALL_GIVE_BACK 0x554e0002u
#define UNSPIN_HYPERCALL_HELP 0x554e0003u
#define UNSPIN_HINT_MAGIC 0x544e4948u /* "HINT" */

/* What a vCPU spins for. */
enum unspin_hint_waiting {
	UNSPIN_HINT_NOT_WAITING = 0,
	UNSPIN_HINT_WAITS_FOR_LOCK = 1,
	UNSPIN_HINT_WAITS_FOR_ANSWERS = 2, /* to an IPI that it sent */
};

struct unspin_hint {
	unspin_u32 magic;     /* UNSPIN_HINT_MAGIC */
	unspin_u32 critical;  /* locks asked for or held: raised before asking, lowered after unlock */
	unspin_u32 holding;   /* of them held */
	unspin_u32 waiting;   /* enum unspin_hint_waiting */
	unspin_u64 lock;      /* of the lock asked for or held last: any number that names it within the VM */
	unspin_u64 targets;   /* while waiting for answers: who was asked, one bit for each of the first 64 vCPUs */
	unspin_u64 asked_tsc; /* when the wait began */
	unspin_u32 borrowed;  /* written by the host: 1: give the CPU back once nothing is critical any more */
	unspin_u32 reserved0;
	unspin_u64 reserved[2];
};
UNSPIN_ASSERT_SIZE(struct unspin_hint, 64);

/*
 * Arguments of UNSPIN_EVENT_HINT. argument0: `critical` (bits 0..7), `holding` (8..15) and `waiting` (16..23), each stopping
 * at 255; argument1: `targets` while waiting for answers, otherwise `lock`; argument2: `asked_tsc`.
 */
#define UNSPIN_HINT_CRITICAL_SHIFT 0
#define UNSPIN_HINT_HOLDING_SHIFT 8
#define UNSPIN_HINT_WAITING_SHIFT 16

#endif
