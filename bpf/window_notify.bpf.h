/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * window_notify.bpf.h - the guests' spin threshold in place of the window: guests that cooperate have a page (abi/hint.h), are told
 * there how long to spin, and the exits that end their waits make their VM's epochs (policy/spin_threshold.h).
 *
 * The page is read and written while its vCPU's thread is current, at kvm_exit and kvm_entry, with interrupts off: by
 * bpf_probe_read_user() and bpf_probe_write_user(), which fail instead of faulting. Written where the magic stands only, and only
 * words that change. Nothing in it is believed of anybody but its own VM: who lies, or writes the word itself, moves the
 * threshold of its own guest. A guest without a page is left alone.
 */
#ifndef UNSPIN_BPF_WINDOW_NOTIFY_H
#define UNSPIN_BPF_WINDOW_NOTIFY_H

#include "guest_memory.bpf.h"
#include "window_epoch.bpf.h"
#include "window_exit.bpf.h"

/* The page's first words, in their order. */
struct hint_words {
	u32 magic, critical, holding, waiting;
};
_Static_assert(__builtin_offsetof(struct unspin_hint, waiting) == __builtin_offsetof(struct hint_words, waiting),
	       "as in abi/hint.h");

/* The current vCPU's page as it is now. One that has gone is forgotten until it is registered again. */
static __always_inline bool read_hint(struct vcpu_state *self, struct hint_words *words)
{
	if (!self->hint)
		return 0;
	if (bpf_probe_read_user(words, sizeof(*words), (void *)self->hint) == 0 && words->magic == UNSPIN_HINT_MAGIC)
		return 1;
	self->hint = 0;
	__sync_fetch_and_add(&globals.lost_hints, 1);
	return 0;
}

/* Inside the struct whose magic was read just now. Where options.bound is another the verifier sees no call. */
static __always_inline void write_word(struct vcpu_state *self, u32 offset, u32 value)
{
	if (bpf_probe_write_user((void *)(self->hint + offset), &value, sizeof(value)))
		__sync_fetch_and_add(&globals.lost_hints, 1);
}

/* The current vCPU is about to enter its guest. */
static __always_inline void notify_spin_count(struct vcpu_state *self, struct vm_state *vm)
{
	struct hint_words words;

	if (!self->hint || !vm->notified || (vm->wanted == self->window && !self->acknowledge))
		return;
	if (!read_hint(self, &words))
		return;
	/* Whoever registers has cleared both words. */
	if (self->acknowledge)
		write_word(self, __builtin_offsetof(struct unspin_hint, acknowledged), UNSPIN_HINT_MAGIC);
	self->acknowledge = 0;
	write_word(self, __builtin_offsetof(struct unspin_hint, spin_turns), vm->wanted);
	if (vm->wanted == self->window)
		return;
	__sync_fetch_and_add(&globals.changes, 1);
	__sync_fetch_and_add(&vm->windows, (u64)vm->wanted - self->window);
	self->window = vm->wanted;
	self->changed = 1;
}

static __always_inline u32 waits_for_lock(struct vcpu_state *self)
{
	struct hint_words words;

	return read_hint(self, &words) ? words.waiting == UNSPIN_HINT_WAITS_FOR_LOCK : UNSPIN_UNKNOWN_HALF;
}

/*
 * The current vCPU has left its guest. A wait may go on over many exits, so its time is all that was spent in the guest since the
 * last exit that counted; a wait that had begun when the threshold changed says nothing of the new one.
 */
static __always_inline void threshold_exit(struct vcpu_state *self, struct vm_state *vm, u32 wait, u64 now_ns)
{
	u64 inside_ns;

	if (self->entered_ns && now_ns > self->entered_ns)
		self->inside_ns += now_ns - self->entered_ns;
	self->entered_ns = 0;
	/* Most exits end no wait: the page need not be read. */
	if (!self->window || wait == UNSPIN_WAIT_EXIT_NONE || wait == UNSPIN_WAIT_EXIT_PAUSE_LOOP ||
	    !unspin_exit_counts(UNSPIN_BOUND_THRESHOLD, wait, waits_for_lock(self)))
		return;
	inside_ns = self->changed ? 0 : self->inside_ns;
	self->inside_ns = 0;
	self->changed = 0;
	count_exit(self, vm, self->window, inside_ns, now_ns);
}

/* The current vCPU names its page: inside one page of its memory, and aligned, or it is none. */
static __always_inline void register_hint(struct vcpu_state *self, u64 address)
{
	bool had = self->hint;

	if (address % PAGE_BYTES > PAGE_BYTES - sizeof(struct unspin_hint) || address % sizeof(u32) ||
	    is_in_user_mode(self->vcpu))
		return;
	self->hint = host_address(self->vcpu, address);
	self->acknowledge = 1;
	if (self->hint && !had)
		__sync_fetch_and_add(&globals.hints, 1);
}

#endif
