// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - the useful time of VMs (policy/auto/useful_time.h), under any scheduler of the host.
 *
 * kvm_entry and kvm_exit fire on the vCPU's thread with interrupts off (svm_vcpu_run(), vmx_vcpu_run(), Linux 7.2): a thread's
 * meter, and the sums of its VM on its CPU, have one writer at a time. A VM is its process, as policies of one VM are.
 *
 * If user space requests samples, a timer of each CPU takes them at random times while vCPUs run there (sampler.bpf.h).
 *
 * Bounds: map values lie within their maps by the verifier's check; `vcpu` is typed by BTF and checked for NULL; KVM's structures are
 * read by safe reads (common/exits.bpf.h).
 */
#include "../common/exits.bpf.h"
#include "sampler.bpf.h"

#include <bpf/bpf_tracing.h>

#define VCPUS_MAX 65536

char program_license[] SEC("license") = "GPL";

/* By process, as useful_times. Changed by all vCPUs of a VM: if two add a place at the same time, one of the two is lost. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, VMS_MAX);
	__type(key, u32);
	__type(value, struct unspin_spin_places);
} spin_places SEC(".maps");

static __always_inline struct unspin_spin_places *places_of(u32 process)
{
	struct unspin_spin_places *places = bpf_map_lookup_elem(&spin_places, &process), none = {};

	if (places)
		return places;
	bpf_map_update_elem(&spin_places, &process, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&spin_places, &process);
}

static __always_inline void read_svm(struct kvm_vcpu *vcpu, struct unspin_stretch *stretch)
{
	struct vmcb *vmcb = vmcb_of(vcpu);
	struct exit_code exit = svm_exit_code(vmcb);

	if (exit.code != SVM_EXIT_PAUSE && exit.code != SVM_EXIT_INTR)
		return;
	stretch->end = exit.code == SVM_EXIT_PAUSE ? UNSPIN_STRETCH_PAUSE_LOOP : UNSPIN_STRETCH_INTERRUPTED;
	stretch->window = exit.window;
	if (is_protected(vcpu))
		return;
	stretch->where = svm_place(vmcb);
	stretch->user = stretch->where.space != 0;
}

/* Where the guest was is in the VMCS, which a BPF program cannot read. */
static __always_inline void read_vmx(struct kvm_vcpu *vcpu, struct unspin_stretch *stretch)
{
	struct exit_code exit = vmx_exit_code(vcpu);

	stretch->window = exit.window;
	if (exit.code == EXIT_REASON_PAUSE_INSTRUCTION)
		stretch->end = UNSPIN_STRETCH_PAUSE_LOOP;
	else if (exit.code == EXIT_REASON_EXTERNAL_INTERRUPT)
		stretch->end = UNSPIN_STRETCH_INTERRUPTED;
}

/* The process of each vCPU's thread. User space takes out those that are gone; threads for which there is no room are not listed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, VCPUS_MAX);
	__type(key, u32);
	__type(value, u32);
} vcpu_threads SEC(".maps");

/* The current thread is a vCPU's. Its meter; NULL: there is no memory for one. */
static __always_inline struct unspin_spin_meter *new_meter(struct task_struct *p)
{
	u64 ids = bpf_get_current_pid_tgid();
	u32 thread = ids, process = ids >> 32;

	bpf_map_update_elem(&vcpu_threads, &thread, &process, BPF_ANY);
	return bpf_task_storage_get(&meters, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

SEC("tp_btf/kvm_entry")
int BPF_PROG(on_entry, struct kvm_vcpu *vcpu)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct unspin_spin_meter *meter = bpf_task_storage_get(&meters, p, NULL, 0);

	if (!meter)
		meter = new_meter(p);
	if (!meter)
		return 0;
	unspin_meter_enter(meter, bpf_ktime_get_ns());
	if (sample_ns)
		keep_sampling();
	return 0;
}

SEC("tp_btf/kvm_exit")
int BPF_PROG(on_exit, struct kvm_vcpu *vcpu, u32 isa)
{
	struct unspin_stretch stretch = {
		.now_ns = bpf_ktime_get_ns(), .end = UNSPIN_STRETCH_OTHER, .renews = sample_ns != 0};
	struct unspin_spin_meter *meter = bpf_task_storage_get(&meters, bpf_get_current_task_btf(), NULL, 0);
	u32 process = bpf_get_current_pid_tgid() >> 32;
	struct unspin_useful_time *sums = sums_of(process);
	struct unspin_spin_places *places = places_of(process);

	if (!vcpu || !meter || !sums || !places)
		return 0;
	if (is_svm(isa))
		read_svm(vcpu, &stretch);
	else if (is_vmx(isa))
		read_vmx(vcpu, &stretch);
	unspin_meter_exit(meter, places, sums, &stretch);
	return 0;
}
