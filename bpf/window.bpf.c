// SPDX-License-Identifier: GPL-2.0-only
/*
 * window.bpf.c - the pause-loop window of VMs, by policy: fixed, KVM's own rule, or APPLE (rulings 16 to 20). It needs no
 * sched_ext: the host's scheduler stays, whichever it is. The window is written by kmod/unspin_ple.
 *
 * kvm_entry and kvm_exit run on the vCPU's thread with interrupts off (svm_vcpu_run(), vmx_vcpu_run(), Linux 7.2), so a
 * thread's own state has one writer but for sched_switch, which is on the same CPU. A VM's state is shared by its vCPUs and
 * has a lock, below which nothing but the policy's arithmetic happens.
 *
 * Every read: map values lie within their maps by the verifier's check; `vcpu` is typed by BTF and checked for NULL; what lies
 * behind it is read through bpf_probe_read_kernel(), which fails instead of faulting and leaves zeroes.
 */
#include "window_epoch.bpf.h"

char program_license[] SEC("license") = "GPL";

/* arch/x86/kvm/trace.h; arch/x86/include/uapi/asm/svm.h, vmx.h */
#define KVM_ISA_SVM 2
#define SVM_EXIT_PAUSE 0x077
#define EXIT_REASON_PAUSE_INSTRUCTION 40
/* CPU time that may stand uncounted while a vCPU runs on without pause-loop exits: a fraction of any epoch. */
#define COUNT_CPU_EVERY_NS 1000000ull

/* kmod/unspin_ple.c */
extern int unspin_ple_set(struct kvm_vcpu *vcpu, u32 window) __ksym;

struct guest_exit {
	bool pause;
	u32 window;
};

static __always_inline void read_svm(struct kvm_vcpu *vcpu, struct guest_exit *exit)
{
	struct vmcb *vmcb = BPF_CORE_READ((struct vcpu_svm *)vcpu, vmcb);

	exit->pause = BPF_CORE_READ(vmcb, control.exit_code) == SVM_EXIT_PAUSE;
	exit->window = BPF_CORE_READ(vmcb, control.pause_filter_count);
}

static __always_inline void read_vmx(struct kvm_vcpu *vcpu, struct guest_exit *exit)
{
	u32 reason;

	if (bpf_core_field_exists(struct vcpu_vmx, vt))
		reason = BPF_CORE_READ((struct vcpu_vmx *)vcpu, vt.exit_reason.full);
	else
		reason = BPF_CORE_READ((struct vcpu_vmx___before_6_15 *)vcpu, exit_reason.full);
	exit->pause = (u16)reason == EXIT_REASON_PAUSE_INSTRUCTION;
	exit->window = BPF_CORE_READ((struct vcpu_vmx *)vcpu, ple_window);
}

static __always_inline void read_exit(struct kvm_vcpu *vcpu, u32 isa, struct guest_exit *exit)
{
	*exit = (struct guest_exit){};
	if (isa == KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_svm))
		read_svm(vcpu, exit);
	else if (isa != KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_vmx))
		read_vmx(vcpu, exit);
}

/* Sets the window and the sum that the VM's mean is made of. */
static __always_inline void set_window(struct kvm_vcpu *vcpu, struct vcpu_state *self, struct vm_state *vm, u32 window)
{
	if (window == self->window)
		return;
	if (unspin_ple_set(vcpu, window) < 0) {
		__sync_fetch_and_add(&globals.refusals, 1);
		return;
	}
	__sync_fetch_and_add(&globals.changes, 1);
	__sync_fetch_and_add(&vm->windows, (u64)window - self->window);
	self->window = window;
}

/* What is in force as the hardware has it: KVM or another program may have changed it. */
static __always_inline void see_window(struct vcpu_state *self, struct vm_state *vm, u32 window)
{
	if (window == self->window)
		return;
	__sync_fetch_and_add(&vm->windows, (u64)window - self->window);
	self->window = window;
}

/* A pause-loop exit: into the VM's epoch, which may be over with it. The window that the vCPU is to have from now on. */
static __always_inline u32 pause_exit(struct vcpu_state *self, struct vm_state *vm, const struct guest_exit *exit,
				      u64 now_ns)
{
	struct unspin_window_rule rule = window_rule();
	struct unspin_window_epoch ended = {};
	u64 cpu_ns = cpu_time(self, now_ns), inside_ns = 0, mean;
	u32 desired;

	__sync_fetch_and_add(&globals.exits, 1);
	self->left_ns = now_ns;
	if (self->entered_ns && now_ns > self->entered_ns)
		inside_ns = now_ns - self->entered_ns;
	bpf_spin_lock(&vm->lock);
	add_times(vm, cpu_ns, 0);
	mean = vm->vcpus ? vm->windows / vm->vcpus : 0;
	vm->mean_units += mean;
	vm->sums.mean_units += mean;
	vm->sums.window_units += exit->window;
	vm->sums.exits++;
	add_spun(&vm->sums, inside_ns, exit->window);
	if (unspin_epoch_add_exit(&vm->epoch, exit->window))
		end_epoch(vm, &ended, now_ns);
	desired = vm->wanted;
	bpf_spin_unlock(&vm->lock);
	if (ended.exits)
		write_epoch(&ended);
	return options.control == UNSPIN_WINDOW_KVM ? unspin_window_after_exit(&rule, exit->window, 0) : desired;
}

SEC("tp_btf/kvm_exit")
int BPF_PROG(on_exit, struct kvm_vcpu *vcpu, u32 isa)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct vcpu_state *self;
	struct guest_exit exit;
	struct vm_state *vm;
	u32 window;

	if (!vcpu)
		return 0;
	self = serving(vcpu, now_ns, 1);
	if (!self)
		return 0;
	vm = vm_at(self->vm);
	if (!vm)
		return 0;
	read_exit(vcpu, isa, &exit);
	see_window(self, vm, exit.window);
	if (exit.pause)
		window = pause_exit(self, vm, &exit, now_ns);
	else
		window = options.control == UNSPIN_WINDOW_KVM ? exit.window : vm->wanted;
	if (now_ns - self->counted_ns > COUNT_CPU_EVERY_NS)
		count_time(self, now_ns);
	/* 0: the vCPU has no pause-loop exits, and gets none. */
	if (exit.window)
		set_window(vcpu, self, vm, window);
	return 0;
}

SEC("tp_btf/kvm_entry")
int BPF_PROG(on_entry, struct kvm_vcpu *vcpu)
{
	struct unspin_window_rule rule = window_rule();
	u64 now_ns = bpf_ktime_get_ns();
	struct vcpu_state *self;
	struct vm_state *vm;

	if (!vcpu)
		return 0;
	self = serving(vcpu, now_ns, 0);
	if (!self)
		return 0;
	if (self->left_ns)
		count_time(self, now_ns);
	self->entered_ns = now_ns;
	if (!self->arrived)
		return 0;
	self->arrived = 0;
	vm = vm_at(self->vm);
	if (vm && self->window)
		set_window(vcpu, self, vm, unspin_window_after_switch(&rule, self->window));
	return 0;
}

/* Most tasks have no storage at all: spares them the call. */
static __always_inline struct vcpu_state *state_of(struct task_struct *task)
{
	return task->bpf_storage ? bpf_task_storage_get(&vcpus, task, NULL, 0) : NULL;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *previous, struct task_struct *next)
{
	struct vcpu_state *leaves = state_of(previous), *comes;

	if (leaves) {
		count_time(leaves, bpf_ktime_get_ns());
		leaves->counted_ns = 0;
	}
	comes = state_of(next);
	if (comes) {
		comes->counted_ns = bpf_ktime_get_ns();
		comes->arrived = 1;
	}
	return 0;
}

SEC("fentry/kvm_destroy_vm")
int BPF_PROG(on_destroy_vm, struct kvm *kvm)
{
	u64 key = (u64)kvm;

	bpf_map_delete_elem(&vms, &key);
	__sync_fetch_and_add(&globals.destroyed, 1);
	return 0;
}
