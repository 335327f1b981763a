/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * spin_threshold.h - APPLE (apple.h) on a host that cannot set the pause-loop window: it acts on how long guests that cooperate
 * spin before they halt or ask for help (abi/guest/pv_page.h, `spin_count`), and their waits end its epochs.
 *
 * Ours, after rulings 17 to 20: a spin of a waiting loop has a PAUSE, so bounds and steps are those of AMD's window, 3,000 for
 * 4,096 cycles; an exit's spins are those in force at it, and inefficiency.h is the same. Which exits count differs: a wait that
 * the guest bounds ends in a HLT (paravirtual locks) or in a call (Friebel's, or KVM_HC_SCHED_YIELD). KVM's pause-loop exits, which
 * continue beside them with the window as it is, cut such a wait short of its bound, and do not show it.
 */
#ifndef UNSPIN_POLICY_MODEL_SPIN_THRESHOLD_H
#define UNSPIN_POLICY_MODEL_SPIN_THRESHOLD_H

#include "../../abi/types.h"

/* What APPLE and fixed windows set. */
enum unspin_spin_bound {
	UNSPIN_BOUND_WINDOW = 0,    /* the hardware's window of each vCPU */
	UNSPIN_BOUND_THRESHOLD = 1, /* the guests' own bound */
};

/* Why a vCPU has left its guest, as far as that shows that a wait was too long. */
enum unspin_wait_exit {
	UNSPIN_WAIT_EXIT_NONE = 0, /* for another reason */
	UNSPIN_WAIT_EXIT_PAUSE_LOOP = 1,
	UNSPIN_WAIT_EXIT_HALT = 2,
	UNSPIN_WAIT_EXIT_YIELD = 3, /* KVM_HC_SCHED_YIELD */
	UNSPIN_WAIT_EXIT_HELP = 4,  /* UNSPIN_HYPERCALL_HELP */
};

/*
 * Whether an exit is one of an epoch's 1,000. `waits_for_lock`: what the guest reports of its vCPU; anything but 1: it does not wait,
 * or the guest reports nothing. Then a HLT is idleness and a yield follows an IPI (kvm_smp_send_call_func_ipi(), arch/x86/kernel/kvm.c, Linux
 * 7.2). A call for help shows by itself that its vCPU waits.
 */
static inline _Bool unspin_exit_counts(unspin_u32 bound, unspin_u32 exit, unspin_u32 waits_for_lock)
{
	if (bound == UNSPIN_BOUND_WINDOW)
		return exit == UNSPIN_WAIT_EXIT_PAUSE_LOOP;
	if (exit == UNSPIN_WAIT_EXIT_HALT || exit == UNSPIN_WAIT_EXIT_YIELD)
		return waits_for_lock == 1;
	return exit == UNSPIN_WAIT_EXIT_HELP;
}

#endif
