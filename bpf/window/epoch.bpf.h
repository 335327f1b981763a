/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * epoch.bpf.h - a VM's epochs of exits: the time that an epoch sums up, and the window that follows from one that has
 * ended (rulings 17 to 19). Callers run on a thread of the VM, at kvm_exit, kvm_entry or sched_switch, with interrupts
 * off. "Under the lock" means struct vm_state's.
 */
#ifndef UNSPIN_BPF_WINDOW_EPOCH_H
#define UNSPIN_BPF_WINDOW_EPOCH_H

#include "state.bpf.h"

/* CPU time of the current thread since the last call, ns; 0 after it was off its CPU. */
static __always_inline u64 cpu_time(struct vcpu_state *self, u64 now_ns)
{
	u64 since_ns = self->counted_ns;

	self->counted_ns = now_ns;
	return since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
}

/* Adds times to the current epoch and to the VM's sums. Under the lock. */
static __always_inline void add_times(struct vm_state *vm, u64 cpu_ns, u64 handling_ns)
{
	vm->epoch.cpu_ns += cpu_ns;
	vm->epoch.handling_ns += handling_ns;
	vm->sums.cpu_ns += cpu_ns;
	vm->sums.handling_ns += handling_ns;
}

/*
 * Adds to the current epoch the CPU time that has passed, and the part of it that handled a pause-loop exit
 * (ruling 17).
 */
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
	add_times(vm, cpu_ns, handling_ns);
	bpf_spin_unlock(&vm->lock);
}

/*
 * A vCPU spun for a whole `window` in inside_ns: keeps the quickest such pair, from which unit_ps() follows. Under the
 * lock.
 */
static __always_inline void add_spun(struct unspin_window_sums *sums, u64 inside_ns, u32 window)
{
	if (!unspin_window_is_quicker(inside_ns, window, sums->spun_ns, sums->spun_units))
		return;
	sums->spun_ns = inside_ns;
	sums->spun_units = window;
}

/* The time of one unit of the window, ps; UNSPIN_UNKNOWN if none has been seen. Under the lock. */
static __always_inline u64 unit_ps(const struct vm_state *vm)
{
	return options.cycle_ps ? options.cycle_ps
				: unspin_window_unit_ps(vm->sums.spun_ns, vm->sums.spun_units, UNSPIN_PAUSE_LEAST_PS);
}

/* Ends the current epoch: writes it to *ended, sets the VM's next window and begins the next epoch. Under the lock. */
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

/*
 * Adds an exit to the VM's epoch, which may end with it. `window` was in force at the exit and was spun through in
 * inside_ns of time in the guest (0: not known). Returns the VM's window from now on.
 */
static __always_inline u32 count_exit(struct vcpu_state *self, struct vm_state *vm, u32 window, u64 inside_ns,
				      u64 now_ns)
{
	struct unspin_window_epoch ended = {};
	u64 cpu_ns = cpu_time(self, now_ns), mean;
	u32 desired;

	__sync_fetch_and_add(&globals.exits, 1);
	self->left_ns = now_ns;
	bpf_spin_lock(&vm->lock);
	add_times(vm, cpu_ns, 0);
	mean = vm->vcpus ? vm->windows / vm->vcpus : 0;
	vm->mean_units += mean;
	vm->sums.mean_units += mean;
	vm->sums.window_units += window;
	vm->sums.exits++;
	add_spun(&vm->sums, inside_ns, window);
	if (unspin_epoch_add_exit(&vm->epoch, window))
		end_epoch(vm, &ended, now_ns);
	desired = vm->wanted;
	bpf_spin_unlock(&vm->lock);
	if (ended.exits)
		write_epoch(&ended);
	return desired;
}

#endif
