/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * notify.bpf.h - sets the guest's spin threshold in place of the window. A guest reads in its pv page
 * (abi/guest/pv_page.h) how long to spin; the exits that end its waits make its VM's epochs
 * (policy/model/spin_threshold.h). Nothing is done for a guest without a page.
 *
 * The page is read and written while its vCPU's thread is current, at kvm_exit and kvm_entry, with interrupts off, by
 * bpf_probe_read_user() and bpf_probe_write_user(), which fail instead of faulting. Only words that change are written,
 * and only where the magic number was just read. What a guest writes into its page changes the threshold of its own VM
 * only.
 */
#ifndef UNSPIN_BPF_WINDOW_NOTIFY_H
#define UNSPIN_BPF_WINDOW_NOTIFY_H

#include "../common/guest_memory.bpf.h"
#include "epoch.bpf.h"
#include "exit.bpf.h"

/* The page's first words, in their order. */
struct pv_page_words {
	u32 magic, critical, holding, waiting;
};
_Static_assert(__builtin_offsetof(struct unspin_pv_page, waiting) == __builtin_offsetof(struct pv_page_words, waiting),
	       "as in abi/guest/pv_page.h");

/*
 * Reads the current vCPU's page. A page that cannot be read, or lacks the magic number, is not used until it is
 * registered again.
 */
static __always_inline bool read_pv_page(struct vcpu_state *self, struct pv_page_words *words)
{
	if (!self->pv_page)
		return 0;
	if (bpf_probe_read_user(words, sizeof(*words), (void *)self->pv_page) == 0 &&
	    words->magic == UNSPIN_PV_PAGE_MAGIC)
		return 1;
	self->pv_page = 0;
	__sync_fetch_and_add(&globals.lost_pv_pages, 1);
	return 0;
}

/*
 * Writes a word at `offset` within the struct, whose magic number the caller has just read. Where options.bound is not
 * UNSPIN_BOUND_THRESHOLD the verifier drops the call.
 */
static __always_inline void write_word(struct vcpu_state *self, u32 offset, u32 value)
{
	if (bpf_probe_write_user((void *)(self->pv_page + offset), &value, sizeof(value)))
		__sync_fetch_and_add(&globals.lost_pv_pages, 1);
}

/* Writes the VM's threshold into the current vCPU's page if it has changed. Called at kvm_entry. */
static __always_inline void notify_spin_count(struct vcpu_state *self, struct vm_state *vm)
{
	struct pv_page_words words;

	if (!self->pv_page || !vm->notified || (vm->wanted == self->window && !self->acknowledge))
		return;
	if (!read_pv_page(self, &words))
		return;
	/* The guest clears both words before it registers. */
	if (self->acknowledge)
		write_word(self, __builtin_offsetof(struct unspin_pv_page, acknowledged), UNSPIN_PV_PAGE_MAGIC);
	self->acknowledge = 0;
	write_word(self, __builtin_offsetof(struct unspin_pv_page, spin_count), vm->wanted);
	if (vm->wanted == self->window)
		return;
	__sync_fetch_and_add(&globals.changes, 1);
	__sync_fetch_and_add(&vm->windows, (u64)vm->wanted - self->window);
	self->window = vm->wanted;
	self->changed = 1;
}

/*
 * 1 if, by its page, the current vCPU waits for a lock, 0 if not, UNSPIN_UNKNOWN_HALF if the page cannot be read.
 */
static __always_inline u32 waits_for_lock(struct vcpu_state *self)
{
	struct pv_page_words words;

	return read_pv_page(self, &words) ? words.waiting == UNSPIN_PV_PAGE_WAITS_FOR_LOCK : UNSPIN_UNKNOWN_HALF;
}

/*
 * Handles an exit of the current vCPU. A wait may last over many exits, so its time is all that was spent in the guest
 * since the last exit that counted. A wait that began before the threshold changed is no sample of the new
 * threshold: its time is 0.
 */
static __always_inline void threshold_exit(struct vcpu_state *self, struct vm_state *vm, u32 wait, u64 now_ns)
{
	u64 inside_ns;

	if (self->entered_ns && now_ns > self->entered_ns)
		self->inside_ns += now_ns - self->entered_ns;
	self->entered_ns = 0;
	/* Most exits end no wait: then the page is not read. */
	if (!self->window || wait == UNSPIN_WAIT_EXIT_NONE || wait == UNSPIN_WAIT_EXIT_PAUSE_LOOP ||
	    !unspin_exit_counts(UNSPIN_BOUND_THRESHOLD, wait, waits_for_lock(self)))
		return;
	inside_ns = self->changed ? 0 : self->inside_ns;
	self->inside_ns = 0;
	self->changed = 0;
	count_exit(self, vm, self->window, inside_ns, now_ns);
}

/*
 * Registers the current vCPU's pv page. Ignored unless the struct is aligned, within one page, and named by the guest's
 * kernel.
 */
static __always_inline void register_pv_page(struct vcpu_state *self, u64 address)
{
	bool had = self->pv_page;

	if (address % PAGE_BYTES > PAGE_BYTES - sizeof(struct unspin_pv_page) || address % sizeof(u32) ||
	    is_in_user_mode(self->vcpu))
		return;
	self->pv_page = host_address(self->vcpu, address);
	self->acknowledge = 1;
	if (self->pv_page && !had)
		__sync_fetch_and_add(&globals.pv_page, 1);
}

#endif
