/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * functions.bpf.h - the fact `critical` by the guest's instruction pointer: where its kernel is in a function that only
 * runs inside critical sections (policy/classify/critical_functions.h), as user space found them in the guest's symbols.
 *
 * On AMD only: VMX keeps the instruction pointer where only hardware reads it.
 */
#ifndef UNSPIN_BPF_SCHEDULER_GUEST_FUNCTIONS_H
#define UNSPIN_BPF_SCHEDULER_GUEST_FUNCTIONS_H

#include "mode.bpf.h"

#define SEARCH_STEPS 13 /* halves of UNSPIN_STEER_SECTIONS_MAX */

/* In order of addresses, none overlaps another; options.sections of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, u32);
	__type(value, struct unspin_steer_section);
} sections SEC(".maps");

/* Whether the address lies in one of them. Not inlined, as host_address(). */
__attribute__((noinline)) int in_section(u64 address)
{
	u32 first = 0, end = options.sections;

	for (int i = 0; i < SEARCH_STEPS && first < end; i++) {
		u32 middle = first + (end - first) / 2;
		/* In bounds: the array map refuses an index beyond its end. */
		const struct unspin_steer_section *section = bpf_map_lookup_elem(&sections, &middle);

		if (!section)
			return 0;
		if (address < section->first)
			end = middle;
		else if (address >= section->end)
			first = middle + 1;
		else
			return 1;
	}
	return 0;
}

/* As of the vCPU's last exit. In user mode there is no critical section; elsewhere in the kernel there may be one. */
static __always_inline struct unspin_fact critical_by_address(const struct task_context *task)
{
	struct vcpu_svm *vcpu = (struct vcpu_svm *)task->vcpu;
	u32 mode = mode_of(task);
	struct vmcb *vmcb;

	if (!options.sections || mode == UNSPIN_MODE_UNKNOWN)
		return UNSPIN_UNKNOWN_FACT;
	if (mode == UNSPIN_MODE_USER)
		return (struct unspin_fact){0, 0};
	if (!bpf_core_type_exists(struct vcpu_svm))
		return UNSPIN_UNKNOWN_FACT;
	/* Safe reads; mode_of() has found that the vCPU is there and that this is its type. */
	vmcb = BPF_CORE_READ(vcpu, vmcb);
	if (!in_section(BPF_CORE_READ(vmcb, save.rip)))
		return UNSPIN_UNKNOWN_FACT;
	count(unspin_steer_in_sections, 1);
	return (struct unspin_fact){1, 0};
}

#endif
