/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * samples.bpf.h - where guests wait, and vCPUs that are stopped to see whether they are there (policy/classify/spin_samples.h).
 *
 * Places are stored at pause-loop exits. The timer that ends slices (slice_end.bpf.h) also takes the samples: its interrupt has the
 * vCPU leave its guest, and it runs on that CPU in a softirq, before the vCPU's thread continues. The result of a sample takes effect
 * where the guest is entered again (spin.bpf.h). On AMD only: VMX keeps the guest's place where only hardware reads it.
 *
 * Bounds: a lookup in `vms` fails for unknown keys; a vCPU is read by safe reads, while no VM was destroyed since its address was stored.
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_SAMPLES_H
#define UNSPIN_BPF_SCHEDULER_YIELD_SAMPLES_H

#include "help.bpf.h"

#include "../../common/exits.bpf.h"

/*
 * Whether the vCPU is sampled where there is reason to; the policy is refused where the programs for it are not loaded. Not by a
 * constant: what sets the timer's callback has to be walked by the verifier (the stack's depth is checked with that in view).
 */
static __always_inline bool may_be_sampled(const struct task_context *task)
{
	return task->vcpu && task->steered && task->choice.policies & UNSPIN_POLICY_SPIN_SAMPLES;
}

/* The VM of that vCPU, and its VMCB; NULL: it is not known, not on AMD, or hides where it is (SEV-ES). */
static __always_inline struct vm *seen_vm(const struct task_context *task, struct vmcb **vmcb)
{
	if (!task->vcpu || task->vm_generation != destroyed || !bpf_core_type_exists(struct vcpu_svm) ||
	    is_protected((struct kvm_vcpu *)task->vcpu))
		return NULL;
	*vmcb = vmcb_of((struct kvm_vcpu *)task->vcpu);
	return bpf_map_lookup_elem(&vms, &task->vm);
}

/* The current vCPU's guest has left for a pause-loop exit. Returns 0. Not inlined, as waits_at_place(). */
__attribute__((noinline)) int learn_place(const struct task_context *task __arg_nonnull)
{
	struct unspin_code_place where;
	struct vmcb *vmcb;
	struct vm *all = seen_vm(task, &vmcb);

	if (!all)
		return 0;
	where = svm_place(vmcb);
	unspin_learn_spin_place(&all->places, &where, 0, 0, bpf_ktime_get_ns());
	return 0;
}

/*
 * Whether the vCPU, which runs or has just been running, was waiting when it left its guest: it was stopped by an interrupt or a
 * pause-loop exit, at such a place, which is known for longer then. 1 or 0. Not inlined, and not static: the verifier walks it once.
 */
__attribute__((noinline)) int waits_at_place(const struct task_context *task __arg_nonnull)
{
	struct unspin_code_place where;
	u64 now_ns = bpf_ktime_get_ns();
	struct exit_code exit;
	struct vmcb *vmcb;
	struct vm *all = seen_vm(task, &vmcb);
	u32 at;

	if (!all)
		return 0;
	exit = svm_exit_code(vmcb);
	if (exit.code != SVM_EXIT_INTR && exit.code != SVM_EXIT_PAUSE)
		return 0;
	where = svm_place(vmcb);
	at = unspin_spin_place_of(&all->places, &where, now_ns);
	if (at >= UNSPIN_SPIN_PLACES)
		return 0;
	/* Samples keep windows from being over, and so pause-loop exits from showing it again. In bounds: tested just now. */
	all->places.seen_ns[at] = now_ns;
	return 1;
}

/* There is reason to sample the vCPU that runs here from now on, unless it is sampled already. The caller sets the timer. */
static __always_inline void begin_samples(struct task_context *task, bool waited, u64 now_ns)
{
	if (!may_be_sampled(task) || task->sample_ns)
		return;
	unspin_samples_begin(&task->samples, waited);
	task->sample_ns = now_ns + task->samples.interval_ns;
}

/* It begins to run on this CPU: what it was doing when it lost its CPU may be over. */
static __always_inline void renew_samples(struct task_context *task, u64 now_ns)
{
	task->sample_ns = 0;
	if (task->on_spin == ON_SPIN_SAMPLED)
		task->on_spin = ON_SPIN_OVER;
	if (task->waited || task->borrow_kind == UNSPIN_BORROWS_LOAN)
		begin_samples(task, task->waited, now_ns);
}

/* The timer has fired on the CPU on which it runs. */
static __always_inline void take_sample(struct task_context *task, u64 now_ns)
{
	if (!task->sample_ns || unspin_before(now_ns, task->sample_ns))
		return;
	count(unspin_steer_samples, 1);
	/* KVM may be in the middle of a pause-loop exit of it: there is one walk for an exit. */
	if (unspin_sampled(&task->samples, waits_at_place(task)) && task->on_spin == ON_SPIN_OVER) {
		task->on_spin = ON_SPIN_SAMPLED;
		count(unspin_steer_sampled, 1);
	}
	task->sample_ns = task->samples.interval_ns ? now_ns + task->samples.interval_ns : 0;
}

#endif
