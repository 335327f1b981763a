// SPDX-License-Identifier: GPL-2.0-only
/*
 * empty.bpf.c - programs that do nothing, one for each of observe/main.bpf.c's, at the same places.
 *
 * Their run time, as the kernel counts it, is the cost of running any program at that place. It is subtracted from the
 * run time of main.bpf.c's program there.
 */
#include "../common/kernel_types.h"

#include <bpf/bpf_helpers.h>

char program_license[] SEC("license") = "GPL";

/* One program; its section is its type and place. */
#define EMPTY(name, section)                                                                                           \
	SEC(section)                                                                                                   \
	int name(void *context)                                                                                        \
	{                                                                                                              \
		return 0;                                                                                              \
	}

EMPTY(empty_kvm_exit, "tp_btf/kvm_exit")
EMPTY(empty_kvm_entry, "tp_btf/kvm_entry")
EMPTY(empty_on_spin, "kprobe.multi/kvm_vcpu_on_spin")
EMPTY(empty_yield_to, "kprobe.multi/yield_to")
EMPTY(empty_yield_to_return, "kretprobe.multi/yield_to")
EMPTY(empty_kvm_apic_ipi, "tp_btf/kvm_apic_ipi")
EMPTY(empty_apic_accept_irq, "kprobe.multi/__apic_accept_irq")
EMPTY(empty_kvm_apic_accept_irq, "tp_btf/kvm_apic_accept_irq")
EMPTY(empty_kvm_hypercall, "tp_btf/kvm_hypercall")
EMPTY(empty_sched_switch, "tp_btf/sched_switch")
EMPTY(empty_sched_wakeup, "tp_btf/sched_wakeup")
EMPTY(empty_sched_process_exit, "tp_btf/sched_process_exit")
EMPTY(empty_destroy_vm, "fentry/kvm_destroy_vm")

/*
 * Executes 100 instructions more than an empty program, from which the time of one instruction is computed. It has the
 * section of empty_kvm_exit and another name.
 */
SEC("tp_btf/kvm_exit")
int hundred_instructions(void *context)
{
#define TEN "r0 += 1; r0 += 1; r0 += 1; r0 += 1; r0 += 1; r0 += 1; r0 += 1; r0 += 1; r0 += 1; r0 += 1;"
	asm volatile("r0 = 0;" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN : : : "r0");
	return 0;
}
