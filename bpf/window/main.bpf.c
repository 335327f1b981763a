// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - sets the pause-loop window of VMs by policy: fixed, KVM's own rule, or APPLE (rulings 16 to 20). It
 * works under any scheduler of the host, without sched_ext. The window is written by kmod/unspin_ple.c; without that
 * module, a spin threshold is written into guests' pv pages instead (window/notify.bpf.h).
 *
 * kvm_entry and kvm_exit fire on the vCPU's thread with interrupts off (svm_vcpu_run(), vmx_vcpu_run(), Linux 7.2), and
 * sched_switch on the same CPU with interrupts off, so a thread's state has one writer at a time. A VM's state is
 * shared by its vCPUs and has a lock, under which only the policy's arithmetic runs.
 *
 * Bounds of every read: map values lie within their maps by the verifier's check; `vcpu` is typed by BTF and checked
 * for NULL; what it points to is read through bpf_probe_read_kernel(), which leaves zeroes instead of faulting.
 */
#include "exit.bpf.h"
#include "notify.bpf.h"

char program_license[] SEC("license") = "GPL";

/* The CPU time of a vCPU without pause-loop exits is counted at least this often: a fraction of any epoch. */
#define COUNT_CPU_EVERY_NS 1000000ull

/* kmod/unspin_ple.c. Without the module options.bound, constant to the verifier, makes the call dead code. */
extern int unspin_ple_set(struct kvm_vcpu *vcpu, u32 window) __ksym __weak;

/* Sets the vCPU's window and updates the sum of which the VM's mean window is computed. */
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

/* Takes over the window that is in force: KVM or another program may have changed it. */
static __always_inline void see_window(struct vcpu_state *self, struct vm_state *vm, u32 window)
{
	if (window == self->window)
		return;
	__sync_fetch_and_add(&vm->windows, (u64)window - self->window);
	self->window = window;
}

/* The window that a vCPU is to have after this exit. */
static __always_inline u32 window_after(struct vcpu_state *self, struct vm_state *vm, const struct guest_exit *exit,
					u64 now_ns)
{
	struct unspin_window_rule rule = window_rule();
	u64 inside_ns = self->entered_ns && now_ns > self->entered_ns ? now_ns - self->entered_ns : 0;
	bool counts = unspin_exit_counts(UNSPIN_BOUND_WINDOW, exit->wait, UNSPIN_UNKNOWN_HALF);
	u32 desired = counts ? count_exit(self, vm, exit->window, inside_ns, now_ns) : vm->wanted;

	if (options.control != UNSPIN_WINDOW_KVM)
		return desired;
	return counts ? unspin_window_after_exit(&rule, exit->window, 0) : exit->window;
}

SEC("tp_btf/kvm_exit")
int BPF_PROG(on_exit, struct kvm_vcpu *vcpu, u32 isa)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct vcpu_state *self;
	struct guest_exit exit;
	struct vm_state *vm;
	u32 window = 0;

	if (!vcpu)
		return 0;
	self = serving(vcpu, now_ns, 1);
	if (!self)
		return 0;
	vm = vm_at(self->vm);
	if (!vm)
		return 0;
	read_exit(vcpu, isa, &exit);
	if (options.bound == UNSPIN_BOUND_THRESHOLD) {
		threshold_exit(self, vm, exit.wait, now_ns);
	} else {
		see_window(self, vm, exit.window);
		window = window_after(self, vm, &exit, now_ns);
	}
	if (now_ns - self->counted_ns > COUNT_CPU_EVERY_NS)
		count_time(self, now_ns);
	/* A window of 0 means that pause-loop exits are off for this vCPU: they stay off. */
	if (options.bound == UNSPIN_BOUND_WINDOW && exit.window)
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
	vm = vm_at(self->vm);
	if (!vm)
		return 0;
	if (options.bound == UNSPIN_BOUND_THRESHOLD) {
		notify_spin_count(self, vm);
		return 0;
	}
	if (!self->arrived)
		return 0;
	self->arrived = 0;
	if (self->window)
		set_window(vcpu, self, vm, unspin_window_after_switch(&rule, self->window));
	return 0;
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

/* KVM fires the tracepoint for numbers that it does not implement, too. Loaded only where thresholds are set. */
SEC("tp_btf/kvm_hypercall")
int BPF_PROG(on_hypercall, unsigned long number, unsigned long argument)
{
	struct vcpu_state *self = state_of(bpf_get_current_task_btf());

	if (number == UNSPIN_HYPERCALL_REGISTER_PV_PAGE && self && self->destroyed == globals.destroyed)
		register_pv_page(self, argument);
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
