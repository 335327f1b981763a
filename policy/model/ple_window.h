/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * ple_window.h - how long a vCPU may spin before the hardware stops it: what changes the window, when, to what.
 *
 * A window is in the hardware's unit (pause_loop.h): TSC cycles on Intel, PAUSEs on AMD. Each vCPU has one of its own, but
 * under APPLE (apple.h) the VM has. It takes effect when the guest is entered next.
 *
 *   off         no pause-loop exits at all (ple_gap=0; pause_filter_count=0; KVM_X86_DISABLE_EXITS_PAUSE)
 *   fixed       as configured, for ever: APPLE's third scenario; also kvm_intel with ple_window_grow=1 and shrink=1
 *   kvm-2012    fixed at the default, as KVM was before b4a2d31da812 (Intel, August 2014) and 8566ac8b (AMD, 2018)
 *   kvm         grows at every pause-loop exit, before a vCPU to run instead is searched for (vmx.c, handle_pause(); svm.c,
 *               pause_interception()), and shrinks when the vCPU gets a pCPU again after it lost or left it
 *               (vmx_vcpu_load() and svm_vcpu_load() of a vCPU that was scheduled out; earlier vmx_sched_in() and
 *               svm_sched_in()), 7.2. With the default shrink of 0 that is a reset.
 */
#ifndef UNSPIN_POLICY_MODEL_PLE_WINDOW_H
#define UNSPIN_POLICY_MODEL_PLE_WINDOW_H

#include "../../abi/types.h"

/* arch/x86/kvm/x86.h, 7.2: KVM_DEFAULT_PLE_GAP, KVM_VMX_DEFAULT_PLE_WINDOW, KVM_SVM_DEFAULT_PLE_WINDOW and what follows. */
#define UNSPIN_PLE_GAP_CYCLES 128u
#define UNSPIN_PLE_WINDOW_CYCLES 4096u
#define UNSPIN_PLE_WINDOW_PAUSES 3000u
#define UNSPIN_PLE_GROW 2u
#define UNSPIN_PLE_SHRINK 0u
#define UNSPIN_PLE_MAX_CYCLES 0xffffffffu /* UINT_MAX */
#define UNSPIN_PLE_MAX_PAUSES 65535u	  /* USHRT_MAX: the VMCB's field has 16 bits */

enum unspin_window_control {
	UNSPIN_WINDOW_OFF = 0,
	UNSPIN_WINDOW_FIXED = 1,
	UNSPIN_WINDOW_KVM_2012 = 2,
	UNSPIN_WINDOW_KVM = 3,
	UNSPIN_WINDOW_APPLE = 4,
	UNSPIN_WINDOW_CONTROLS = 5,
};

/* The module's parameters: ple_window, ple_window_grow, _shrink, _max; pause_filter_count and so on. */
struct unspin_window_rule {
	unspin_u32 control; /* enum unspin_window_control */
	unspin_u32 base;    /* the window at first, and that shrinking goes no lower than */
	unspin_u32 grow;    /* 0: back to base; below base: a factor; otherwise added */
	unspin_u32 shrink;  /* 0: back to base; below base: a divisor; otherwise subtracted */
	unspin_u32 max;
};
UNSPIN_ASSERT_SIZE(struct unspin_window_rule, 20);

/* __grow_ple_window() of arch/x86/kvm/x86.h, 7.2. */
static inline unspin_u32 unspin_window_grown(const struct unspin_window_rule *rule, unspin_u32 window)
{
	unspin_u64 grown = window;

	if (rule->grow < 1)
		return rule->base;
	/* Both are below 2^32: neither product nor sum leaves 64 bits. */
	if (rule->grow < rule->base)
		grown *= rule->grow;
	else
		grown += rule->grow;
	return grown < rule->max ? (unspin_u32)grown : rule->max;
}

/*
 * __shrink_ple_window() of the same file, its `min` being the base as in every caller. Like there, subtracting more than the
 * window wraps around: with a shrink above the window it comes out huge.
 */
static inline unspin_u32 unspin_window_shrunk(const struct unspin_window_rule *rule, unspin_u32 window)
{
	if (rule->shrink < 1)
		return rule->base;
	if (rule->shrink < rule->base)
		window /= rule->shrink;
	else
		window -= rule->shrink;
	return window > rule->base ? window : rule->base;
}

/* The window of a new vCPU. Nothing of it is used when the control is `off`. */
static inline unspin_u32 unspin_window_at_start(const struct unspin_window_rule *rule)
{
	return rule->base;
}

/*
 * The window after a pause-loop exit at which `window` was in force. `desired`: the VM's, used under APPLE only, where "a
 * changed window takes effect at a vCPU's next exit" (ruling 18).
 */
static inline unspin_u32 unspin_window_after_exit(const struct unspin_window_rule *rule, unspin_u32 window,
						  unspin_u32 desired)
{
	switch (rule->control) {
	case UNSPIN_WINDOW_KVM:
		return unspin_window_grown(rule, window);
	case UNSPIN_WINDOW_APPLE:
		return desired;
	default:
		return window;
	}
}

/* The window of a vCPU that gets a pCPU after it had none. */
static inline unspin_u32 unspin_window_after_switch(const struct unspin_window_rule *rule, unspin_u32 window)
{
	return rule->control == UNSPIN_WINDOW_KVM ? unspin_window_shrunk(rule, window) : window;
}

#endif
