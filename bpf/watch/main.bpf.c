// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - counts for each vCPU how long it ran, waited for a CPU, was halted and spun. No events are written.
 *
 * No program is attached to context switches or wake-ups: the kernel's scheduler counts each task's run time, wait time and involuntary
 * switches, and these programs read its counts at guest exits and entries. kvm_entry and kvm_exit fire on the vCPU's thread with
 * interrupts off (svm_vcpu_run(), vmx_vcpu_run(), Linux 7.2): each thread's counters have one writer at a time, and no run is skipped.
 *
 * Guest memory is not read. User space reads the counters by a task iterator (`read_vcpus`): one pass over the host's tasks, without a
 * system call for each.
 *
 * Bounds: map values lie within their maps by the verifier's check; arguments are typed by BTF and checked for NULL; KVM's and tasks'
 * structures are read by safe reads (common/reads.bpf.h).
 */
#include "state.bpf.h"

char program_license[] SEC("license") = "GPL";

static __always_inline u32 svm_stretch(bool direct, struct kvm_vcpu *vcpu, struct unspin_stretch *stretch)
{
	struct vmcb *vmcb = READ(direct, (struct vcpu_svm *)vcpu, vmcb);
	u32 code = READ(direct, vmcb, control.exit_code);

	if (code != SVM_EXIT_PAUSE && code != SVM_EXIT_INTR)
		return code;
	stretch->end = code == SVM_EXIT_PAUSE ? UNSPIN_STRETCH_PAUSE_LOOP : UNSPIN_STRETCH_INTERRUPTED;
	stretch->window = READ(direct, vmcb, control.pause_filter_count);
	/* As is_protected() of common/exits.bpf.h. */
	if (bpf_core_field_exists(vcpu->arch.guest_state_protected) && READ(direct, vcpu, arch.guest_state_protected))
		return code;
	stretch->where.pointer = READ(direct, vmcb, save.rip);
	stretch->user = READ(direct, vmcb, save.cpl) >= USER_CPL;
	if (stretch->user)
		stretch->where.space = READ(direct, vmcb, save.cr3);
	return code;
}

/* The guest's mode and instruction pointer are in the VMCS, which a BPF program cannot read. */
static __always_inline u32 vmx_stretch(bool direct, struct kvm_vcpu *vcpu, struct unspin_stretch *stretch)
{
	u32 code;

	if (bpf_core_field_exists(struct vcpu_vmx, vt))
		code = READ(direct, (struct vcpu_vmx *)vcpu, vt.exit_reason.full);
	else
		code = READ(direct, (struct vcpu_vmx___before_6_15 *)vcpu, exit_reason.full);
	code = (u16)code;
	if (code != EXIT_REASON_PAUSE_INSTRUCTION && code != EXIT_REASON_EXTERNAL_INTERRUPT)
		return code;
	stretch->end = code == EXIT_REASON_PAUSE_INSTRUCTION ? UNSPIN_STRETCH_PAUSE_LOOP : UNSPIN_STRETCH_INTERRUPTED;
	stretch->window = READ(direct, (struct vcpu_vmx *)vcpu, ple_window);
	return code;
}

/* Places of no VM, for exits whose place is not used: most exits need no lookup of their VM. */
struct unspin_spin_places nowhere SEC(".data.nowhere");

/* The vCPU has left its guest: adds the time that it spent there. */
static __always_inline void measure(struct watched_vcpu *watched, const struct unspin_stretch *stretch)
{
	struct unspin_spin_places *places = &nowhere;
	struct unspin_watch_vm *vm;

	if (stretch->end != UNSPIN_STRETCH_OTHER) {
		vm = vm_of(watched);
		if (!vm)
			return;
		places = places_of(vm);
	}
	unspin_meter_exit(&watched->meter, places, &watched->time, stretch);
}

SEC("tp_btf/kvm_exit")
int BPF_PROG(on_exit, struct kvm_vcpu *vcpu, u32 isa)
{
	struct unspin_stretch stretch = {.now_ns = bpf_ktime_get_ns(), .end = UNSPIN_STRETCH_OTHER};
	struct watched_vcpu *watched;
	struct kernel_counts counts;
	bool halts = 0, direct = direct_reads;

	if (!vcpu)
		return 0;
	watched = serving(vcpu, stretch.now_ns);
	if (!watched) {
		__sync_fetch_and_add(&globals.unseen, 1);
		return 0;
	}
	if (is_svm(isa))
		halts = svm_stretch(direct, vcpu, &stretch) == SVM_EXIT_HLT;
	else if (isa == KVM_ISA_VMX && bpf_core_type_exists(struct vcpu_vmx))
		halts = vmx_stretch(direct, vcpu, &stretch) == EXIT_REASON_HLT;
	watched->exits++;
	measure(watched, &stretch);
	if (!halts && !watched->meter.spinning)
		return 0;
	counts = counts_of(bpf_get_current_task_btf());
	watched->switches_at_exit = counts.switches;
	watched->wait_at_exit_ns = counts.wait_ns;
	if (halts)
		watched->halted_since_ns = stretch.now_ns;
	else if (stretch.end == UNSPIN_STRETCH_PAUSE_LOOP)
		watched->paused_since_ns = stretch.now_ns;
	return 0;
}

/* The time since then_ns, without the time that the thread has waited for a CPU since its exit. */
static __always_inline u64 since(const struct watched_vcpu *watched, u64 then_ns, u64 waited_ns, u64 now_ns)
{
	u64 lasted_ns = now_ns > then_ns ? now_ns - then_ns : 0;

	waited_ns -= watched->wait_at_exit_ns;
	return lasted_ns > waited_ns ? lasted_ns - waited_ns : 0;
}

static __always_inline void count_slices(struct watched_vcpu *watched, const struct kernel_counts *counts)
{
	u64 lost = counts->switches - watched->switches_at_exit;

	/* The kernel counts a successful directed yield as one of these, too (yield_to(), kernel/sched/syscalls.c, Linux 7.2). */
	if (lost && watched->yielded)
		lost--;
	watched->slices_lost += lost;
}

SEC("tp_btf/kvm_entry")
int BPF_PROG(on_entry, struct kvm_vcpu *vcpu)
{
	struct watched_vcpu *watched;
	struct kernel_counts counts;
	u64 now_ns;

	if (!vcpu)
		return 0;
	now_ns = bpf_ktime_get_ns();
	watched = serving(vcpu, now_ns);
	if (!watched)
		return 0;
	if (watched->halted_since_ns || watched->meter.spinning) {
		counts = counts_of(bpf_get_current_task_btf());
		if (watched->halted_since_ns)
			watched->halted_ns += since(watched, watched->halted_since_ns, counts.wait_ns, now_ns);
		else
			count_slices(watched, &counts);
		if (watched->paused_since_ns)
			watched->handling_ns += since(watched, watched->paused_since_ns, counts.wait_ns, now_ns);
	}
	watched->halted_since_ns = 0;
	watched->paused_since_ns = 0;
	watched->yielded = 0;
	unspin_meter_enter(&watched->meter, now_ns);
	return 0;
}

/*
 * yield_to() has other callers (the hypercall KVM_HC_SCHED_YIELD); only calls for a pause-loop exit are counted. Not every
 * kernel allows this program.
 */
SEC("kretprobe.multi/yield_to")
int on_yield_to_return(struct pt_regs *registers)
{
	struct watched_vcpu *watched = bpf_task_storage_get(&vcpus, bpf_get_current_task_btf(), NULL, 0);

	if (!watched || !watched->paused_since_ns)
		return 0;
	watched->yields_tried++;
	if ((int)registers->ax > 0) {
		watched->yields_succeeded++;
		watched->yielded = 1;
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_process_exit, struct task_struct *task)
{
	struct watched_vcpu *watched;

	if (!task)
		return 0;
	watched = bpf_task_storage_get(&vcpus, task, NULL, 0);
	if (watched)
		leave_vm(watched, task);
	return 0;
}

/* Not every kernel allows this program. The VM's address may be reused: every thread looks up its VM again. */
SEC("fentry/kvm_destroy_vm")
int BPF_PROG(on_destroy_vm, struct kvm *kvm)
{
	u64 key = (u64)kvm;

	bpf_map_delete_elem(&vms, &key);
	__sync_fetch_and_add(&globals.generation, 1);
	return 0;
}

/* Writes the record of one task, if it serves a vCPU of a VM that still exists. User space reads the iterator. */
SEC("iter/task")
int read_vcpus(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct unspin_watch_record record = {};
	struct watched_vcpu *watched;

	if (!task)
		return 0;
	watched = bpf_task_storage_get(&vcpus, task, NULL, 0);
	if (!watched || !watched->vm || !vm_of(watched))
		return 0;
	record.vm = watched->vm;
	record.kvm = watched->kvm_pointer;
	record.since_ns = watched->since_ns;
	record.halted_since_ns = watched->halted_since_ns;
	record.process = task->tgid;
	record.thread = task->pid;
	record.vcpu = watched->vcpu;
	sum_up(watched, task, &record.counters);
	bpf_seq_write(context->meta->seq, &record, sizeof(record));
	return 0;
}
