// SPDX-License-Identifier: GPL-2.0-only
/*
 * synthetic.bpf.c - for tests and measurements on a kernel without KVM: a thread declares that it serves a vCPU, and
 * slots, the programs of scheduler.bpf.h and the ring buffer work as for a real one.
 *
 * A thread runs these programs itself (BPF_PROG_RUN), so the current task is the thread they are about.
 */
#include "emit.bpf.h"
#include "ipi.bpf.h"
#include "scheduler.bpf.h"
#include "threads.bpf.h"

char program_license[] SEC("license") = "GPL";

/* kernel/bpf/helpers.c, since Linux 6.10. adopt() must not be preempted, and programs of this type can be. */
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

#define EVENTS_MAX 1024 /* in one run */

static __always_inline void adopt_itself(struct unspin_synthetic *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 vm = vm_number(context->vm);
	struct unspin_observed_thread *thread;

	if (vm == UNSPIN_NO_VM)
		return;
	thread = adopt(task, context->vm + context->vcpu, context->vcpu, vm, bpf_ktime_get_ns());
	if (!thread)
		return;
	thread->counters.exits += context->exits;
	context->done = 1;
}

/* The current thread serves vCPU context->vcpu of VM context->vm from now on. */
SEC("syscall")
int synthetic_adopt(struct unspin_synthetic *context)
{
	context->done = 0;
	bpf_preempt_disable();
	adopt_itself(context);
	bpf_preempt_enable();
	return 0;
}

/* Writes context->events events, EVENTS_MAX at most, about the current thread, numbered from context->first. */
SEC("syscall")
int synthetic_emit(struct unspin_synthetic *context)
{
	struct unspin_observed_thread *thread = thread_of(bpf_get_current_task_btf());
	u32 count = context->events;
	u64 first = context->first, now_ns;

	context->done = 0;
	if (!thread)
		return 0;
	for (u32 i = 0; i < EVENTS_MAX && i < count; i++) {
		now_ns = bpf_ktime_get_ns();
		emit(thread, UNSPIN_EVENT_ENTRY, now_ns, first + i, 0, 0);
	}
	context->done = 1;
	return 0;
}

#define RECEIVERS_MAX 64

/* One exit that sends one IPI: the calls that KVM's tracepoints make, in the order of KVM's fast or slow path. */
SEC("syscall")
int synthetic_send(struct unspin_synthetic *context)
{
	struct unspin_observed_thread *thread = thread_of(bpf_get_current_task_btf());
	u32 icr_low = context->icr_low, receivers = context->receivers;

	context->done = 0;
	if (!thread)
		return 0;
	thread->counters.exits++;
	if (!context->fast)
		ipi_sent(thread, &thread->ipi, thread->counters.exits, icr_low, context->destination);
	for (u32 i = 0; i < RECEIVERS_MAX && i < receivers; i++)
		interrupt_accepted(thread, &thread->ipi, thread->counters.exits, thread->counters.vcpu, i,
				   icr_low & 0x700, icr_low);
	if (context->fast)
		ipi_sent(thread, &thread->ipi, thread->counters.exits, icr_low, context->destination);
	if (context->own_vector)
		interrupt_accepted(thread, &thread->ipi, thread->counters.exits, thread->counters.vcpu,
				   thread->counters.vcpu, 0, context->own_vector);
	context->done = 1;
	return 0;
}

/* VM context->vm is destroyed; its address may be reused by another VM. */
SEC("syscall")
int synthetic_destroy(struct unspin_synthetic *context)
{
	forget_vm(context->vm);
	return 0;
}
