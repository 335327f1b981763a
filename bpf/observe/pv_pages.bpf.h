/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pv_pages.bpf.h - reads a guest's pv page (abi/guest/pv_page.h), for guests that have one.
 *
 * A vCPU registers a guest-physical address once, by a hypercall. KVM's memory slots give its address in the VMM's
 * address space, where the page is read while the vCPU's thread is current, with page faults off.
 *
 * The guest is not trusted. The address is looked up in the VM's own slots, so it can only name memory that the guest
 * itself can read. A page that was unmapped or moved cannot be read or lacks the magic number: then no event is
 * written, until the guest registers again. Registering repeatedly costs the guest its own CPU time, as any exit does.
 * Where the guest's mode is known (SVM) a registration from user mode is ignored.
 *
 * Bounds of reads: slots by host_address(), whose reads give 0 where they fail, on the vCPU's thread and within kvm->srcu
 * (vcpu_run()), so they are not freed meanwhile; the page through bpf_probe_read_user(). Checked in Linux 7.2.
 */
#ifndef UNSPIN_BPF_OBSERVE_PV_PAGES_H
#define UNSPIN_BPF_OBSERVE_PV_PAGES_H

#include "emit.bpf.h"
#include "guest_exit.bpf.h"

#include "../../abi/guest/pv_page.h"
#include "../common/guest_memory.bpf.h"

/* The current vCPU registers the struct at this guest-physical address as its pv page. For the hypercall's program. */
static __always_inline void register_pv_page(struct unspin_observed_thread *thread, u64 address)
{
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)thread->vcpu_pointer;
	u64 rip;

	if (read_place(vcpu, thread->isa, &rip) == UNSPIN_MODE_USER)
		return;
	thread->pv_page_address = 0; /* an invalid registration also ends the previous one */
	if (address % PAGE_BYTES <= PAGE_BYTES - sizeof(struct unspin_pv_page))
		thread->pv_page_address = host_address(thread->vcpu_pointer, address);
}

/* The arguments of an event UNSPIN_EVENT_PV_PAGE. */
struct pv_page_words {
	u64 what, about, asked_tsc;
};

/*
 * Reads the page; false if there is none or it cannot be read. `thread` must be the current task's: the page is
 * read in the current address space.
 */
static __always_inline bool read_pv_page(const struct unspin_observed_thread *thread, struct pv_page_words *words)
{
	struct unspin_pv_page pv_page;

	if (!wants(UNSPIN_EVENT_PV_PAGE) || !thread->pv_page_address)
		return 0;
	if (bpf_probe_read_user(&pv_page, __builtin_offsetof(struct unspin_pv_page, borrowed),
				(void *)thread->pv_page_address) ||
	    pv_page.magic != UNSPIN_PV_PAGE_MAGIC)
		return 0;
	words->what = at_most(pv_page.critical, 255) << UNSPIN_PV_PAGE_CRITICAL_SHIFT |
		      at_most(pv_page.holding, 255) << UNSPIN_PV_PAGE_HOLDING_SHIFT |
		      at_most(pv_page.waiting, 255) << UNSPIN_PV_PAGE_WAITING_SHIFT;
	words->about = pv_page.waiting == UNSPIN_PV_PAGE_WAITS_FOR_ANSWERS ? pv_page.targets : pv_page.lock;
	words->asked_tsc = pv_page.asked_tsc;
	return 1;
}

static __always_inline void fill_pv_page(struct unspin_event *event, const struct unspin_observed_thread *thread,
					 u64 now_ns, const struct pv_page_words *words)
{
	fill(event, thread, UNSPIN_EVENT_PV_PAGE, now_ns, words->what, words->about, words->asked_tsc);
}

#endif
