/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * help.bpf.h - a guest calls for help: which vCPU of its VM runs instead (policy/steering/helping.h).
 *
 * The threads of a VM's vCPUs are stored by number as they enter the guest, and ranked one after another. So a call costs
 * at most VM_VCPUS tests, with interrupts off and in the caller's own time; after a call that found none, the same vCPU's next
 * ones are ignored for UNHEARD_NS. Nothing is done in the hypercall's own program, which may be preempted half way.
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_HELP_H
#define UNSPIN_BPF_SCHEDULER_YIELD_HELP_H

#include "buddy.bpf.h"

#include "../../../policy/classify/spin_places.h"

#define VM_VCPUS 64u /* vCPUs with higher numbers are not helped; as many as a pv page's `targets` can name */
/* 64 tests are some 10 us: this bounds them to a tenth of the asker's time. */
#define UNHEARD_NS 100000ull

/* KVM's numbers of vCPUs (APIC ids) that are looked up; receivers of IPIs with greater ones are unknown. */
#define VM_IDS 256u

/* One VM: the thread that ran each vCPU last; 0: none yet. A slot is written by that vCPU's thread only. */
struct vm {
	u32 threads[VM_VCPUS];
	u32 last_boosted;   /* candidate_walk.h */
	u8 numbers[VM_IDS]; /* by vcpu_id: its place in `threads`, plus 1 */
	/* Where it waits. Changed by all of its vCPUs: if two add a place at the same time, one of the two is lost. */
	struct unspin_spin_places places;
};

/* By struct kvm *, a number here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096); /* calls of further VMs are ignored */
	__type(key, u64);
	__type(value, struct vm);
} vms SEC(".maps");

static struct vm no_threads;

/* The current thread enters that vCPU's guest. */
static __always_inline void join_vm(struct task_struct *p, struct task_context *task, struct kvm_vcpu *vcpu)
{
	u64 vm = (u64)vcpu->kvm;
	u32 number = BPF_CORE_READ(vcpu, vcpu_idx), id = BPF_CORE_READ(vcpu, vcpu_id);
	struct vm *all = bpf_map_lookup_elem(&vms, &vm);

	if (!all) {
		/* Two at once: the second finds the first's. */
		bpf_map_update_elem(&vms, &vm, &no_threads, BPF_NOEXIST);
		all = bpf_map_lookup_elem(&vms, &vm);
	}
	task->number = number;
	if (!all || number >= VM_VCPUS)
		return;
	all->threads[number] = scheduled(p)->pid; /* in bounds: tested just now */
	if (id < VM_IDS)
		all->numbers[id] = number + 1; /* as above */
}

/*
 * The policies' decision about that thread, into `decision`: REFUSE for one that has nothing to do with the current one's VM any
 * more, or cannot run here. The candidate's part of `facts` is written. Returns 0. Not inlined, and not static: the verifier
 * then walks it once, and not for each iteration of the loop.
 */
__attribute__((noinline)) int judge(struct unspin_facts *facts, struct unspin_decision *decision, u32 thread,
				    u64 now_ns)
{
	struct task_struct *asks = bpf_get_current_task_btf(), *p;
	struct task_context *task = context_of(asks), *other;

	if (!facts || !decision)
		return 0;
	*decision = unspin_decide(UNSPIN_REFUSE, 0);
	p = bpf_task_from_pid(thread);
	if (!p)
		return 0;
	other = context_of(p);
	if (task && other && other->vm == task->vm && other->steered && !other->on_cpu && other->counted &&
	    !unspin_is_called(other->called_until_ns, now_ns) && may_run_on(p, bpf_get_smp_processor_id())) {
		gather_candidate(&facts->candidate, p, other, now_ns);
		*decision = decide(UNSPIN_ON_HELP, asks, task, facts, thread, now_ns);
	}
	bpf_task_release(p);
	return 0;
}

/* The candidate with the highest rank, of equals the first; 0: none. */
static __always_inline u32 choose(struct task_struct *p, struct task_context *task, struct unspin_facts *facts,
				  struct unspin_decision *best, u64 now_ns)
{
	struct vm *all = bpf_map_lookup_elem(&vms, &task->vm);
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)task->vcpu;
	u32 vcpus = BPF_CORE_READ(vcpu, kvm, created_vcpus);
	u32 self = scheduled(p)->pid, chosen = 0;
	u32 number;

	if (!all)
		return 0;
	bpf_for(number, 0, vcpus < VM_VCPUS ? vcpus : VM_VCPUS)
	{
		struct unspin_decision decision = {};
		u32 thread;

		if (number >= VM_VCPUS) /* once more, for the verifier */
			break;
		thread = all->threads[number];
		if (!thread || thread == self)
			continue;
		judge(facts, &decision, thread, now_ns);
		if ((decision.action == UNSPIN_DIRECT || decision.action == UNSPIN_LEND) &&
		    decision.rank > best->rank) {
			*best = decision;
			chosen = thread;
		}
	}
	return chosen;
}

/* No other CPU calls it meanwhile: two concurrent calls get two vCPUs. */
static __always_inline void call(u32 thread, u64 now_ns)
{
	struct task_struct *p = bpf_task_from_pid(thread);
	struct task_context *task;

	if (!p)
		return;
	task = context_of(p);
	if (task)
		task->called_until_ns = unspin_called_until(now_ns); /* as long as the slice waits for it: pass_on() */
	bpf_task_release(p);
}

/*
 * The current thread's guest has called for help, and is about to be entered; interrupts are off. 1: p leaves instead, or 0.
 * Not inlined, and not static: as judge().
 */
__attribute__((noinline)) int help(struct task_struct *p __arg_trusted, struct task_context *task __arg_nonnull)
{
	struct cpu_context *here = cpu_of(bpf_get_smp_processor_id());
	struct unspin_decision best = unspin_decide(UNSPIN_REFUSE, 0);
	struct unspin_facts facts = {};
	u64 now_ns = bpf_ktime_get_ns();
	u32 thread;

	count(unspin_steer_asked, 1);
	if (!here || !(task->choice.policies & unspin_policy_helping) || !task->steered)
		return 0;
	task->spun++;
	if (unspin_before(now_ns, task->unheard_until_ns)) {
		count(unspin_steer_unheard, 1);
		return 0;
	}
	refresh_facts(p, task);
	facts_of_self(&facts, task, now_ns, now_ns);
	thread = choose(p, task, &facts, &best, now_ns);
	if (!thread) {
		task->unheard_until_ns = now_ns + UNHEARD_NS;
		return 0;
	}
	best = unspin_within_slice(task->borrow_kind, best);
	if (best.action != UNSPIN_GIVE_BACK) {
		count(unspin_steer_helped, 1);
		call(thread, now_ns);
	}
	make_next(here, p, task, thread, best, now_ns);
	leave(p, task);
	return 1;
}

#endif
