// SPDX-License-Identifier: GPL-2.0-only
/*
 * dry.bpf.c - calls the scheduler's policies on a host that it does not schedule: tracing programs, which
 * change nothing there and write to no guest.
 *
 * - A yield: where the fair class handles KVM's request, yield_to_task_fair(), with the same arguments and under
 *   the same checks of yield_to() as ops.yield of a sched_ext scheduler (kernel/sched/syscalls.c, Linux 7.2).
 * - The end of a slice: a runnable vCPU leaves its CPU and has not yielded, whatever made it leave.
 * - No vCPU is ever polled, as none borrows. Nor is help given: a guest's call for it is ignored.
 *
 * Facts are gathered by the scheduler's own functions (scheduler/guest/vcpus.bpf.h), from what the host's scheduler does: a slice
 * begins when a vCPU begins to run and lasts the kernel's base slice; `yielded` is a CPU that stock KVM took from it.
 *
 * All programs run with interrupts off (as kvm_entry, sched_switch, the run queue's lock), but kvm_hypercall, which only
 * stores an address, and those of VMs and threads that end. Map values are checked for NULL before use.
 */
#define UNSPIN_STEER_DRY
#include "guest/vcpus.bpf.h"

#include "../../abi/bpf/dry.h"

char program_license[] SEC("license") = "GPL";

#define THREADS_MAX 16384
#define ANSWERS_MAX 65536

/* A vCPU's thread. */
struct dry_thread {
	struct task_context task;
	u32 number; /* KVM's, of the vCPU */
	u32 process;
};

/* By thread: a program at a function's entry gets tasks as numbers, by which task storage cannot be looked up. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, THREADS_MAX);
	__type(key, u32);
	__type(value, struct dry_thread);
} dry_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ANSWERS_MAX);
	__type(key, struct unspin_dry_key);
	__type(value, struct unspin_dry_count);
} dry_answers SEC(".maps");

struct unspin_dry_losses dry_losses SEC(".data.losses");

static const struct dry_thread new_thread;

static __always_inline struct dry_thread *known(u32 thread)
{
	return bpf_map_lookup_elem(&dry_threads, &thread);
}

/* Whether the current thread is in one of the chosen cgroups, or below. */
static __always_inline bool in_steered_cgroup(void)
{
	for (int level = 0; level <= (int)UNSPIN_DEEPEST_GROUP; level++) {
		u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (!id)
			return false;
		if (bpf_map_lookup_elem(&steered_cgroups, &id))
			return true;
	}
	return false;
}

/* The current thread serves that vCPU now. */
static __always_inline void learn(struct dry_thread *thread, struct kvm_vcpu *vcpu)
{
	struct task_context *task = &thread->task;

	thread->number = vcpu->vcpu_id;
	thread->process = bpf_get_current_pid_tgid() >> 32;
	task->vcpu = (u64)vcpu;
	task->vm = (u64)vcpu->kvm;
	task->vm_generation = destroyed;
	task->pv_page = 0;
	task->critical = UNSPIN_UNKNOWN_FACT;
	task->sections = UNSPIN_UNKNOWN_FACT;
	task->by_class = 0;
	task->mode = UNSPIN_UNKNOWN_FACT;
	choose_policies(bpf_get_current_task_btf(), task, in_steered_cgroup());
}

static __always_inline void begin_dry_slice(struct task_context *task, u64 now_ns)
{
	task->on_cpu = 1;
	task->counted = 1;
	task->slice_end_ns = now_ns + slice_of(task);
	task->spun = 0;
	task->yielding = 0;
	policies_see_slice_start(task->choice.policies, &task->memory);
}

SEC("tp_btf/kvm_entry")
int BPF_PROG(dry_kvm_entry, struct kvm_vcpu *vcpu)
{
	u32 id = (u32)bpf_get_current_pid_tgid();
	struct dry_thread *thread = known(id);

	if (!vcpu)
		return 0;
	if (!thread) {
		if (bpf_map_update_elem(&dry_threads, &id, &new_thread, BPF_NOEXIST) == 0)
			thread = known(id);
		if (!thread) {
			__sync_fetch_and_add(&dry_losses.threads, 1);
			return 0;
		}
		begin_dry_slice(&thread->task, bpf_ktime_get_ns());
	}
	if (thread->task.vcpu != (u64)vcpu || thread->task.vm_generation != destroyed)
		learn(thread, vcpu);
	/* Stock yielded to no effect. */
	thread->task.yielding = 0;
	return 0;
}

SEC("tp_btf/kvm_hypercall")
int BPF_PROG(dry_kvm_hypercall, unsigned long number, unsigned long argument)
{
	struct dry_thread *thread;
	struct task_context *task;

	if (number != UNSPIN_HYPERCALL_REGISTER_PV_PAGE)
		return 0;
	thread = known((u32)bpf_get_current_pid_tgid());
	if (!thread)
		return 0;
	task = &thread->task;
	/* As the scheduler does: inside one page, aligned, and not by a process in the guest's user mode. */
	if (!task->vcpu || task->vm_generation != destroyed ||
	    argument % PAGE_BYTES > PAGE_BYTES - sizeof(struct unspin_pv_page) || argument % sizeof(u32) ||
	    mode_of(task) == UNSPIN_MODE_USER)
		return 0;
	if (!task->pv_page)
		count(unspin_steer_pv_pages, 1);
	task->pv_page = host_address(task->vcpu, argument);
	return 0;
}

static __always_inline void note(const struct dry_thread *thread, u32 id, const struct dry_thread *candidate,
				 u32 candidate_id, u32 event, u32 action, bool asked)
{
	struct unspin_dry_key key = {.vm = thread->task.vm,
				     .thread = id,
				     .candidate = candidate_id,
				     .event = event,
				     .action = action,
				     .asked = asked};
	struct unspin_dry_count *found = bpf_map_lookup_elem(&dry_answers, &key);

	if (!found) {
		struct unspin_dry_count first = {.process = thread->process,
						 .vcpu = thread->number,
						 .candidate_vcpu = candidate ? candidate->number : 0};

		/* Only this thread writes to its keys, but for its successor of the same number. */
		bpf_map_update_elem(&dry_answers, &key, &first, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&dry_answers, &key);
	}
	if (found)
		__sync_fetch_and_add(&found->count, 1);
	else
		__sync_fetch_and_add(&dry_losses.answers, 1);
}

/* The arguments are the yielder's run queue and the thread it yields to. The loader adds other classes' functions. */
SEC("kprobe.multi/yield_to_task_fair")
int dry_yield(struct pt_regs *registers)
{
	/* A safe read: the caller holds both run queues' locks, so the task is there. */
	u32 candidate_id = BPF_CORE_READ((struct task_struct *)registers->si, pid);
	struct task_struct *current = bpf_get_current_task_btf();
	u32 id = current->pid;
	struct dry_thread *yielder = known(id);
	struct dry_thread *target = known(candidate_id);
	struct unspin_decision decision = unspin_decide(UNSPIN_REFUSE, 0);
	struct unspin_facts facts = {};
	u64 now_ns = bpf_ktime_get_ns();
	bool asked;

	if (!yielder)
		return 0;
	yielder->task.spun++;
	asked = target && yielder->task.choice.policies && yielder->task.steered && target->task.steered;
	if (asked) {
		target->task.counted = 1; /* it is runnable: yield_to() has checked */
		gather_other(&facts.candidate, &target->task, now_ns);
		/* As old as in the scheduler, which would not refresh it either. */
		facts_of_self(&facts, &yielder->task, yielder->task.left_ns, now_ns);
		decision = decide(UNSPIN_ON_YIELD, current, &yielder->task, &facts, candidate_id, now_ns);
	}
	note(yielder, id, target, target ? candidate_id : 0, UNSPIN_ON_YIELD, decision.action, asked);
	yielder->task.yielding = 1;
	return 0;
}

/* It is runnable. Current is still p. */
static __always_inline void ask_at_slice_end(struct dry_thread *thread, struct task_struct *p, u64 now_ns)
{
	struct unspin_facts facts = {};
	struct unspin_decision decision;

	refresh_facts(p, &thread->task);
	facts_of_self(&facts, &thread->task, now_ns, now_ns);
	decision = decide(UNSPIN_ON_SLICE_END, p, &thread->task, &facts, 0, now_ns);
	note(thread, p->pid, NULL, 0, UNSPIN_ON_SLICE_END, decision.action, true);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(dry_sched_switch, bool preempt, struct task_struct *previous, struct task_struct *next, u32 previous_state)
{
	struct dry_thread *leaving, *arriving;
	u64 now_ns;

	if (!previous || !next)
		return 0;
	leaving = known(previous->pid);
	if (leaving) {
		struct task_context *task = &leaving->task;
		/* A preempted task stays on its queue whatever its state (kernel/sched/core.c, __schedule()). */
		bool runnable = preempt || !previous_state;

		now_ns = bpf_ktime_get_ns();
		if (task->yielding)
			task->yielded_ns = now_ns;
		else if (runnable && task->vcpu && task->steered && task->choice.policies)
			ask_at_slice_end(leaving, previous, now_ns);
		remember(previous, task);
		task->on_cpu = 0;
		task->counted = runnable;
		task->left_ns = now_ns;
	}
	arriving = known(next->pid);
	if (arriving)
		begin_dry_slice(&arriving->task, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(dry_process_exit, struct task_struct *task)
{
	u32 thread;

	if (!task)
		return 0;
	thread = task->pid;
	bpf_map_delete_elem(&dry_threads, &thread);
	return 0;
}

SEC("fentry/kvm_destroy_vm")
int BPF_PROG(dry_destroy_vm)
{
	__sync_fetch_and_add(&destroyed, 1);
	return 0;
}
