/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pending_ipi.bpf.h - which vCPUs were sent an IPI while they were off their CPU, and by which vCPU: the input of VEE'21's rules of
 * candidates (policy/steering/candidate.h, ruling 32).
 *
 * A mark is stored with the receiver, and ends when that runs: it is valid while the receiver's `left_ns` is the same. Which
 * interrupts are an IPI is decided in ipi_match.bpf.h, which the observer shares.
 *
 * The programs here are loaded only where a rule of candidates is on at attach.
 */
#ifndef UNSPIN_BPF_SCHEDULER_YIELD_PENDING_IPI_H
#define UNSPIN_BPF_SCHEDULER_YIELD_PENDING_IPI_H

#include "help.bpf.h"

#include "../../../abi/bpf/observe.h"

/* What a vCPU's thread sends. Used by that thread only, with interrupts off but in programs of KVM's tracepoints. */
struct spin_sender {
	u64 entries;
	struct unspin_ipi_sender ipi;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct spin_sender);
} senders SEC(".maps");

/* The interrupts and candidate marks of a vCPU that is off its CPU; those from before it last ran are gone. */
static __always_inline struct pending_ipi *pending_ipi_of(struct task_context *task)
{
	struct pending_ipi *pending = &task->pending_ipi;

	if (pending->left_ns != task->left_ns) {
		pending->sent_by = 0;
		pending->passed_by = 0;
		pending->eligible = 0;
		pending->left_ns = task->left_ns;
	}
	return pending;
}

#define IPI_CONTEXT struct task_context

/* The current vCPU's IPI has reached the vCPU with that number of KVM's: if it is off its CPU, it is a receiver (ruling 32). */
static __always_inline void ipi_reaches(struct task_context *task, const struct unspin_ipi_sender *sender, u64 now_ns,
					u32 receiver)
{
	struct vm *all = bpf_map_lookup_elem(&vms, &task->vm);
	struct task_context *other;
	struct task_struct *p;
	u32 number;

	if (!all || receiver >= VM_IDS)
		return;
	number = all->numbers[receiver] - 1; /* in bounds: tested just now; 0 becomes a large number */
	if (number >= VM_VCPUS || task->number >= VM_VCPUS)
		return;
	p = bpf_task_from_pid(all->threads[number]); /* as above */
	if (!p)
		return;
	other = context_of(p);
	if (other && other->vm == task->vm && !other->on_cpu) {
		struct pending_ipi *pending = pending_ipi_of(other);
		u64 bit = 1ull << task->number;
		u32 vector = sender->how & 0xff;

		if (__sync_fetch_and_or(&pending->sent_by, bit) & bit && pending->vector == vector)
			__sync_fetch_and_add(&task->unanswered, 1);
		pending->sent_ns = now_ns;
		pending->vector = vector;
		if (other->counted && unspin_linux_vector(vector) != UNSPIN_VECTOR_RESCHEDULE)
			__sync_fetch_and_or(&task->sent_to, 1ull << number);
	}
	bpf_task_release(p);
}

#include "../../common/ipi_match.bpf.h"

/* Whether that thread's vCPU, of the same VM, still has to answer the vCPU with that number. */
static __always_inline bool has_to_answer(u32 thread, u64 vm, u32 number)
{
	struct task_struct *p = bpf_task_from_pid(thread);
	struct task_context *other;
	bool has = false;

	if (!p)
		return false;
	other = context_of(p);
	if (other && other->vm == vm && other->counted && !other->on_cpu)
		has = pending_ipi_of(other)->sent_by & 1ull << (number & (VM_VCPUS - 1));
	bpf_task_release(p);
	return has;
}

/*
 * Whether the current thread's vCPU waits for the answer of one that waits for a CPU: of those that it sent an IPI, which are few; those
 * that have answered are not checked again. 1 or 0. Not inlined, and not static: the verifier walks it once.
 */
__attribute__((noinline)) int awaits_answer(struct task_context *task __arg_nonnull)
{
	struct vm *all = bpf_map_lookup_elem(&vms, &task->vm);
	u32 number;

	if (!all)
		return 0;
	bpf_for(number, 0, VM_VCPUS)
	{
		if (number >= VM_VCPUS) /* once more, for the verifier */
			break;
		if (!(task->sent_to & 1ull << number))
			continue;
		if (has_to_answer(all->threads[number], task->vm, task->number))
			return 1;
		__sync_fetch_and_and(&task->sent_to, ~(1ull << number));
	}
	return 0;
}

/* The current thread enters its guest: what it sent is of the exit before. */
static __always_inline void count_entry(struct task_struct *p, struct task_context *task)
{
	struct spin_sender *sender = bpf_task_storage_get(&senders, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (sender)
		sender->entries++;
	task->spins = 0;
}

/* The vCPU of the current thread, if it is one, and what it sends. */
static __always_inline struct task_context *sending(struct spin_sender **sender)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_context *task = context_of(p);

	if (!task || !task->vcpu || task->vm_generation != destroyed)
		return NULL;
	*sender = bpf_task_storage_get(&senders, p, NULL, 0);
	return *sender ? task : NULL;
}

SEC("tp_btf/kvm_apic_ipi")
int BPF_PROG(on_spin_apic_ipi, u32 icr_low, u32 destination)
{
	struct spin_sender *sender;
	struct task_context *task = sending(&sender);

	if (task) {
		__sync_fetch_and_add(&task->sent, 1);
		ipi_sent(task, &sender->ipi, sender->entries, icr_low, destination);
	}
	return 0;
}

SEC("tp_btf/kvm_apic_accept_irq")
int BPF_PROG(on_spin_accept_irq, u32 receiver, u16 delivery_mode, u16 trigger_mode, u8 vector)
{
	struct spin_sender *sender;
	struct task_context *task = sending(&sender);

	/* Its own number, as KVM has it, matters only where it is the receiver: then it runs, and is none. */
	if (task)
		interrupt_accepted(task, &sender->ipi, sender->entries, VM_IDS, receiver, delivery_mode, vector);
	return 0;
}

/* KVM_HC_SEND_IPI: the receivers follow. */
static __always_inline void announce_multicast(u64 icr)
{
	struct spin_sender *sender;
	struct task_context *task = sending(&sender);

	if (!task)
		return;
	__sync_fetch_and_add(&task->sent, 1);
	announce_ipi(&sender->ipi, sender->entries, icr, UNSPIN_IPI_HYPERCALL, UNSPIN_UNKNOWN);
}

#endif
