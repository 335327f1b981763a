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
#include "kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../abi/window.h"
#include "../policy/apple.h"

char program_license[] SEC("license") = "GPL";

/* arch/x86/kvm/trace.h; arch/x86/include/uapi/asm/svm.h, vmx.h */
#define KVM_ISA_SVM 2
#define SVM_EXIT_PAUSE 0x077
#define EXIT_REASON_PAUSE_INSTRUCTION 40
/* CPU time that may stand uncounted while a vCPU runs on without pause-loop exits: a fraction of any epoch. */
#define COUNT_CPU_EVERY_NS 1000000ull

/* include/linux/bpf.h; a map's value is known to have one by this name. */
struct bpf_spin_lock {
	u32 val;
};

/* kmod/unspin_ple.c */
extern int unspin_ple_set(struct kvm_vcpu *vcpu, u32 window) __ksym;

struct vm_state {
	struct bpf_spin_lock lock;
	u32 number;
	u32 process;
	u32 vcpus;
	u32 wanted; /* fixed and apple: the window of all its vCPUs */
	u32 unused;
	u64 windows;	/* sum of its vCPUs' windows */
	u64 mean_units; /* struct unspin_window_epoch */
	u64 begin_ns;
	u64 spun_ns; /* exits that spun through a whole window: their time in the guest, and their windows */
	u64 spun_units;
	struct unspin_epoch epoch;
	struct unspin_apple apple;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64); /* struct kvm * */
	__type(value, struct vm_state);
} vms SEC(".maps");

struct vcpu_state {
	u64 vcpu; /* struct kvm_vcpu *, only compared */
	u64 vm;	  /* struct kvm *, likewise */
	u64 destroyed;
	u64 counted_ns; /* CPU time is counted up to here; 0: off its CPU */
	u64 left_ns;	/* when the pause-loop exit came that is being handled; 0: none */
	u64 entered_ns;
	u64 rip;     /* of the last exit, if it was a pause-loop exit; 0: it was another */
	u32 window;  /* in force from the next entry on */
	u32 arrived; /* 1: it has got a pCPU and not entered its guest since */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct vcpu_state);
} vcpus SEC(".maps");

/* Processes whose VMs these are, unless they are everybody's. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} epochs SEC(".maps");

const volatile struct unspin_window_options options;
struct unspin_window_globals globals SEC(".data.globals");

struct guest_exit {
	bool pause;
	u32 window;
	u64 rip; /* Intel: 1, since it is where only hardware reads it */
};

static __always_inline struct unspin_window_rule window_rule(void)
{
	return (struct unspin_window_rule){options.control, options.base, options.grow, options.shrink, options.max};
}

static __always_inline struct unspin_apple_rule apple_rule(void)
{
	return (struct unspin_apple_rule){options.initial, options.lower, options.upper, options.delta};
}

static __always_inline void read_svm(struct kvm_vcpu *vcpu, struct guest_exit *exit)
{
	struct vmcb *vmcb = BPF_CORE_READ((struct vcpu_svm *)vcpu, vmcb);

	exit->pause = BPF_CORE_READ(vmcb, control.exit_code) == SVM_EXIT_PAUSE;
	exit->window = BPF_CORE_READ(vmcb, control.pause_filter_count);
	exit->rip = exit->pause ? BPF_CORE_READ(vmcb, save.rip) : 0;
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
	exit->rip = exit->pause;
}

static __always_inline void read_exit(struct kvm_vcpu *vcpu, u32 isa, struct guest_exit *exit)
{
	*exit = (struct guest_exit){};
	if (isa == KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_svm))
		read_svm(vcpu, exit);
	else if (isa != KVM_ISA_SVM && bpf_core_type_exists(struct vcpu_vmx))
		read_vmx(vcpu, exit);
}

static __always_inline struct vm_state *vm_at(u64 kvm)
{
	return bpf_map_lookup_elem(&vms, &kvm);
}

/* The VM's state, made when it is seen for the first time. */
static __always_inline struct vm_state *vm_of(u64 kvm, u64 now_ns)
{
	struct unspin_apple_rule apple = apple_rule();
	struct vm_state *vm = vm_at(kvm), fresh = {};

	if (vm)
		return vm;
	fresh.number = __sync_fetch_and_add(&globals.vms, 1);
	fresh.process = bpf_get_current_pid_tgid() >> 32;
	fresh.begin_ns = now_ns;
	unspin_apple_start(&apple, &fresh.apple);
	fresh.wanted =
		options.control == UNSPIN_WINDOW_APPLE ? unspin_apple_window(&apple, &fresh.apple) : options.base;
	/* Of two vCPUs that come at once one makes it; the other's number stays unused. */
	bpf_map_update_elem(&vms, &kvm, &fresh, BPF_NOEXIST);
	return vm_at(kvm);
}

/* The state of the current thread, which serves `vcpu`; NULL where it is not to be touched. */
static __always_inline struct vcpu_state *serving(struct kvm_vcpu *vcpu, u64 now_ns, bool make)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 process = bpf_get_current_pid_tgid() >> 32;
	struct vcpu_state *self = bpf_task_storage_get(&vcpus, task, NULL, 0);
	struct vm_state *vm;

	if (self && self->vcpu == (u64)vcpu && self->destroyed == globals.destroyed)
		return self;
	if (!make || (!options.everyone && !bpf_map_lookup_elem(&processes, &process)))
		return NULL;
	vm = vm_of((u64)vcpu->kvm, now_ns);
	if (!self)
		self = bpf_task_storage_get(&vcpus, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!vm || !self) {
		__sync_fetch_and_add(&globals.left_alone, 1);
		return NULL;
	}
	/* Some VM has gone, and it was not this one's. */
	if (self->vcpu == (u64)vcpu && self->vm == (u64)vcpu->kvm && self->window) {
		self->destroyed = globals.destroyed;
		return self;
	}
	*self = (struct vcpu_state){
		.vcpu = (u64)vcpu, .vm = (u64)vcpu->kvm, .destroyed = globals.destroyed, .counted_ns = now_ns};
	__sync_fetch_and_add(&vm->vcpus, 1);
	return self;
}

/* The CPU time of the current thread since it was counted last. */
static __always_inline u64 cpu_time(struct vcpu_state *self, u64 now_ns)
{
	u64 since_ns = self->counted_ns;

	self->counted_ns = now_ns;
	return since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
}

/* Adds what passed to the epoch that runs: CPU time, and of it the handling of a pause-loop exit that is over (ruling 17). */
static __always_inline void count_time(struct vcpu_state *self, u64 now_ns)
{
	u64 cpu_ns = cpu_time(self, now_ns), handling_ns = 0;
	struct vm_state *vm = vm_at(self->vm);

	if (self->left_ns && now_ns > self->left_ns)
		handling_ns = now_ns - self->left_ns;
	self->left_ns = 0;
	if (!vm)
		return;
	bpf_spin_lock(&vm->lock);
	vm->epoch.cpu_ns += cpu_ns;
	vm->epoch.handling_ns += handling_ns;
	bpf_spin_unlock(&vm->lock);
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

/* The time of one unit of the window, picoseconds, or UNSPIN_UNKNOWN. Under the lock. */
static __always_inline u64 unit_ps(const struct vm_state *vm)
{
	return options.cycle_ps ? options.cycle_ps
				: unspin_window_unit_ps(vm->spun_ns, vm->spun_units, UNSPIN_PAUSE_LEAST_PS);
}

/* The epoch is over: what it was, and what follows from it. Under the lock. */
static __always_inline void end_epoch(struct vm_state *vm, struct unspin_window_epoch *ended, u64 now_ns)
{
	struct unspin_apple_rule apple = apple_rule();

	ended->vm = vm->number;
	ended->process = vm->process;
	ended->begin_ns = vm->begin_ns;
	ended->end_ns = now_ns;
	ended->exits = vm->epoch.exits;
	ended->window_units = vm->epoch.window_units;
	ended->mean_units = vm->mean_units;
	ended->handling_ns = vm->epoch.handling_ns;
	ended->cpu_ns = vm->epoch.cpu_ns;
	ended->unit_ps = unit_ps(vm);
	ended->inefficiency_ppm = unspin_inefficiency_ppm(&vm->epoch, ended->unit_ps);
	ended->window = options.control == UNSPIN_WINDOW_KVM ? 0 : vm->wanted;
	ended->vcpus = vm->vcpus;
	if (options.control == UNSPIN_WINDOW_APPLE) {
		unspin_apple_epoch_over(&apple, &vm->apple, ended->inefficiency_ppm);
		vm->wanted = unspin_apple_window(&apple, &vm->apple);
	}
	vm->epoch = (struct unspin_epoch){};
	vm->mean_units = 0;
	vm->begin_ns = now_ns;
}

static __always_inline void write_epoch(const struct unspin_window_epoch *ended)
{
	if (bpf_ringbuf_output(&epochs, (void *)ended, sizeof(*ended), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&globals.lost_epochs, 1);
}

/* A pause-loop exit: into the VM's epoch, which may be over with it. The window that the vCPU is to have from now on. */
static __always_inline u32 pause_exit(struct vcpu_state *self, struct vm_state *vm, const struct guest_exit *exit,
				      u64 now_ns)
{
	struct unspin_window_rule rule = window_rule();
	struct unspin_window_epoch ended = {};
	u64 cpu_ns = cpu_time(self, now_ns), inside_ns = now_ns - self->entered_ns;
	/* An exit where the last one was: entered within the waiting loop, it has spun through a whole window. */
	bool whole = self->rip == exit->rip && self->entered_ns && now_ns > self->entered_ns;
	u32 desired;

	__sync_fetch_and_add(&globals.exits, 1);
	self->left_ns = now_ns;
	bpf_spin_lock(&vm->lock);
	vm->epoch.cpu_ns += cpu_ns;
	vm->mean_units += vm->vcpus ? vm->windows / vm->vcpus : 0;
	if (whole) {
		vm->spun_ns += inside_ns;
		vm->spun_units += exit->window;
	}
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
	self->rip = exit.rip;
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
