/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * spin.bpf.h - a pause-loop exit under a rule of candidates of ours: which vCPU of its VM runs instead
 * (policy/steering/candidate.h), whether or not KVM would have proposed one.
 *
 * kvm_vcpu_on_spin() is preemptible: its program only sets a mark. There is one walk (policy/steering/candidate_walk.h) for an exit, with
 * interrupts off and on the spinner's own time: VM_VCPUS tests at most. It is done where KVM first proposes a vCPU (ops.yield),
 * whichever that is: then yield_to() calls the scheduler at once. Where KVM proposes none, as at a lost opportunity, it is done
 * where the guest is entered again, and costs an exit more. The policies are called for the candidate as if KVM had proposed it.
 *
 * The programs here are loaded only where a rule of candidates or spin-samples is on at attach.
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_SPIN_H
#define UNSPIN_BPF_SCHEDULER_YIELD_SPIN_H

#include "../slice_end.bpf.h"

#include "../../../policy/steering/candidate_walk.h"

/* One walk, by CPU: interrupts are off from its beginning to its end. */
struct spin_walk {
	struct unspin_walk walk;
	struct unspin_spinner spinner;
	struct unspin_yield_facts seen;
	struct unspin_facts facts;
	struct unspin_decision decision;
	u32 taken;     /* thread; 0: none */
	s32 taken_cpu; /* where it ran last */
	int result;
};

struct {
	__uint(type, STEER_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct spin_walk);
} spin_walks SEC(".maps");

/*
 * It only leaves word for kvm_entry. Not fentry: such a program is preemptible, and another vCPU's that preempts it on its CPU
 * is kept out of it (observe/main.bpf.c); then KVM's own word counted for that exit.
 */
SEC("kprobe.multi/kvm_vcpu_on_spin")
int on_spin_begins(struct pt_regs *registers)
{
	struct task_context *task = context_of(bpf_get_current_task_btf());

	if (!task || !task->vcpu)
		return 0;
	task->on_spin = ON_SPIN_BEGUN;
	if (may_be_sampled(task))
		learn_place(task);
	return 0;
}

/* What is known of a vCPU of the spinner's VM, which may have been halted, or preempted. */
static __always_inline void gather_seen(struct unspin_yield_facts *seen, const struct task_context *spinner,
					struct task_context *other, u64 now_ns)
{
	struct pending_ipi *pending = pending_ipi_of(other);
	u64 bit = 1ull << (spinner->number & (VM_VCPUS - 1));
	bool receiver = pending->sent_by & bit, waits = other->counted && !other->on_cpu;
	struct unspin_fact mode = mode_left_in(other);

	if (other->on_cpu || unspin_is_called(other->called_until_ns, now_ns))
		seen->state = UNSPIN_CANDIDATE_RUNNING; /* or about to: another CPU called it */
	else if (!waits)
		seen->state = UNSPIN_CANDIDATE_HALTED;
	else
		seen->state = other->halted ? UNSPIN_CANDIDATE_WOKEN : UNSPIN_CANDIDATE_PREEMPTED;
	seen->mode = fact_known(mode) ? mode.value : UNSPIN_MODE_UNKNOWN;
	seen->pending = waits && other->halted ? UNSPIN_YES : UNSPIN_NOT_KNOWN;
	seen->posted = UNSPIN_NOT_KNOWN;
	seen->spins = other->spins;
	seen->eligible = pending->eligible;
	seen->receiver = receiver ? UNSPIN_YES : UNSPIN_NO;
	seen->vector = receiver ? unspin_linux_vector(pending->vector) : UNSPIN_VECTOR_NOT_KNOWN;
	seen->passed = (pending->passed_by & bit) != 0;
	seen->ipi_age_ns = receiver ? fact_seen(1, pending->sent_ns, now_ns).age_ns : UNSPIN_AGE_UNKNOWN;
}

/* The result for it, logged if options require it. */
static __always_inline u32 judge_candidate(const struct spin_walk *of, const struct task_context *spinner, u32 thread,
					   u32 candidate, u64 now_ns)
{
	u32 verdict = unspin_candidate_verdict(&of->spinner, &of->seen);
	struct unspin_decision_record *record;

	if (!options.log_decisions)
		return verdict;
	record = bpf_ringbuf_reserve(&decisions, sizeof(*record), 0);
	if (!record) {
		count(unspin_steer_unlogged, 1);
		return verdict;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->time_ns = now_ns;
	record->thread = thread;
	record->candidate = candidate;
	record->event = UNSPIN_ON_SPIN;
	record->policies = spinner->choice.policies;
	record->verdict = verdict;
	record->spinner = of->spinner;
	record->seen = of->seen;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return verdict;
}

/*
 * Judges that thread's vCPU; `of->result` is what yield_to() would have returned for it, `of->taken` the thread if it is taken.
 * Not inlined, and not static: the verifier then walks it once, and not for each iteration of the loop.
 */
__attribute__((noinline)) int consider(struct spin_walk *of, u32 thread, u64 now_ns)
{
	struct task_struct *asks = bpf_get_current_task_btf(), *p;
	struct task_context *task = context_of(asks), *other;

	if (!of)
		return 0;
	of->result = 0;
	p = bpf_task_from_pid(thread);
	if (!p)
		return 0;
	other = context_of(p);
	if (task && other && other->vm == task->vm && other->steered) {
		u32 verdict;

		gather_seen(&of->seen, task, other, now_ns);
		verdict = judge_candidate(of, task, scheduled(asks)->pid, thread, now_ns);
		if (verdict & UNSPIN_CANDIDATE_TOGGLE)
			other->pending_ipi.eligible ^= 1;
		if (verdict & UNSPIN_CANDIDATE_MARK)
			__sync_fetch_and_or(&other->pending_ipi.passed_by, 1ull << (task->number & (VM_VCPUS - 1)));
		if (verdict & UNSPIN_CANDIDATE_TAKE && may_run_on(p, bpf_get_smp_processor_id())) {
			gather_candidate(&of->facts.candidate, p, other, now_ns);
			of->facts.candidate.awaited =
				(struct unspin_fact){unspin_is_receiver(&of->spinner, &of->seen), of->seen.ipi_age_ns};
			note_answers(task, &of->facts.candidate);
			of->facts.self.awaits = awaits_lately(task);
			gather_order(&of->facts.order, task, p, other, now_ns);
			of->decision = decide(UNSPIN_ON_YIELD, asks, task, &of->facts, thread, now_ns);
			of->decision = unspin_within_slice(task->borrow_kind, of->decision);
			if (of->decision.action != UNSPIN_PASS && of->decision.action != UNSPIN_REFUSE) {
				of->result = 1;
				of->taken = thread;
				of->taken_cpu = task_cpu(p);
				/* As long as the slice waits for it; GIVE_BACK needs none. */
				if (of->decision.action != UNSPIN_GIVE_BACK)
					other->called_until_ns = unspin_called_until(now_ns);
			}
		}
	}
	bpf_task_release(p);
	return 0;
}

/* One walk round the VM. */
static __always_inline void walk_round(struct spin_walk *of, struct vm *all, u32 vcpus, u64 now_ns)
{
	u32 slice;

	bpf_for(slice, 0, VM_VCPUS)
	{
		u32 number = unspin_walk_next(&of->walk);

		if (number >= VM_VCPUS) /* UNSPIN_WALK_NOBODY, too */
			break;
		if (!all->threads[number]) /* in bounds: tested just now */
			continue;
		consider(of, all->threads[number], now_ns);
		unspin_walk_tried(&of->walk, number, of->result);
	}
	if (of->walk.boosted < vcpus)
		all->last_boosted = of->walk.boosted;
}

/* The rule of candidates for that spinner, which was seen to spin in a sample or not; UNSPIN_CANDIDATE_RULES: none. */
static __always_inline u32 rule_for(const struct task_context *task)
{
	bool sampled = task->on_spin == ON_SPIN_SAMPLED;

	if (!task->steered)
		return UNSPIN_CANDIDATE_RULES;
	if (task->choice.policies & UNSPIN_POLICY_CANDIDATES)
		return task->choice.candidates;
	return sampled && may_be_sampled(task) ? UNSPIN_CANDIDATES_KVM_7_2 : UNSPIN_CANDIDATE_RULES;
}

/* The current thread's vCPU has spun; interrupts are off. Whether another thread is next here, for which p shall leave. */
static __always_inline bool rule_chooses(struct task_struct *p, struct task_context *task)
{
	struct cpu_context *here = cpu_of(bpf_get_smp_processor_id());
	struct vm *all = bpf_map_lookup_elem(&vms, &task->vm);
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)task->vcpu;
	u32 vcpus = BPF_CORE_READ(vcpu, kvm, created_vcpus);
	u64 now_ns = bpf_ktime_get_ns();
	struct spin_walk *of;
	u32 zero = 0, rule = rule_for(task), round;

	task->on_spin = ON_SPIN_WALKED;
	of = bpf_map_lookup_elem(&spin_walks, &zero);
	if (!of || !here || !all || rule >= UNSPIN_CANDIDATE_RULES)
		return false;
	count(unspin_steer_spins, 1);
	task->spun++;
	if (vcpus > VM_VCPUS)
		vcpus = VM_VCPUS;
	refresh_facts(p, task);
	facts_of_self(&of->facts, task, now_ns, now_ns);
	of->taken = 0;
	of->spinner.rule = rule;
	of->spinner.options = task->choice.candidate_options;
	of->spinner.mode = fact_known(task->mode) ? task->mode.value : UNSPIN_MODE_UNKNOWN;
	of->spinner.awaits = UNSPIN_NOT_KNOWN;
	for (round = 1; round <= 2; round++) {
		if (of->taken || (round == 2 && of->spinner.rule != UNSPIN_CANDIDATES_PROPOSED_2026))
			break;
		of->spinner.round = round;
		unspin_walk_begin(&of->walk, of->spinner.rule, task->number,
				  all->last_boosted < vcpus ? all->last_boosted : 0, vcpus);
		walk_round(of, all, vcpus, now_ns);
	}
	if (!of->taken)
		return false;
	count(unspin_steer_chosen, 1);
	make_next(here, p, task, of->taken, of->decision, now_ns);
	/*
	 * yield_to() makes that CPU reschedule, too (kernel/sched/syscalls.c, Linux 7.2): a borrower that runs there comes out
	 * of its guest and is polled. Without it convoys lasted under loan-cpl.
	 */
	if (of->taken_cpu != (s32)bpf_get_smp_processor_id())
		scx_bpf_kick_cpu(of->taken_cpu, 0);
	task->spins = 1;
	return true;
}

/* It is about to enter its guest. Whether it leaves instead, for a vCPU that KVM did not propose. */
static __always_inline bool spin(struct task_struct *p, struct task_context *task)
{
	bool walked = task->on_spin == ON_SPIN_WALKED, chose = !walked && rule_chooses(p, task);

	task->on_spin = ON_SPIN_OVER;
	if (!chose)
		return false;
	count(unspin_steer_unnamed, 1);
	leave(p, task);
	return true;
}

/* It spun, stays, and is about to enter its guest. */
static __always_inline void sample_from_now(struct task_context *task)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_context *here = cpu_of(cpu);
	u64 now_ns;

	if (!here || !may_be_sampled(task))
		return;
	now_ns = bpf_ktime_get_ns();
	begin_samples(task, true, now_ns);
	end_slice_on_time(cpu, here, task, now_ns);
}

#endif
