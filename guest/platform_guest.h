/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * platform_guest.h - the waiting contract (locks/platform.h) in the micro guest.
 *
 * Words lie in ordinary write-back memory that all vCPUs of the VM share: x86's strong order gives acquire and release
 * for nothing, and the compiler's builtins keep it from reordering. Valid once boot has loaded GS.
 */
#ifndef UNSPIN_GUEST_PLATFORM_GUEST_H
#define UNSPIN_GUEST_PLATFORM_GUEST_H

#include "../locks/platform_atomics.h"
#include "vcpu.h"

/* truth.c: the wait going on has just become a stall, or so long that help is asked for. */
void wait_noticed(struct vcpu *self);

/* The counts go to memory at every turn: the VMM reads them while a wait lasts. */
static inline unspin_u32 platform_wait_while(const struct platform_word *word, unspin_u32 value, unspin_u32 turns)
{
	struct vcpu *self = this_vcpu();
	struct unspin_guest_statistics *statistics = self->statistics;
	unspin_u32 seen = value;

	while (turns) {
		if (turns != PLATFORM_FOREVER)
			turns--;
		if (++statistics->spin_turns == self->notice_at_turns)
			wait_noticed(self);
		seen = platform_load_acquire(word);
		if (seen != value)
			break;
		if (--self->turns_until_pause == 0) {
			self->turns_until_pause = PARAMETERS->pause_every_turns;
			statistics->pauses++;
			__asm__ volatile("pause" : : : "memory");
		}
	}
	return seen;
}

#endif
