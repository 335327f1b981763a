// SPDX-License-Identifier: GPL-2.0-only
/*
 * synthetic.bpf.c - threads that say of themselves that they serve a vCPU, so that everything but KVM can be tried and
 * measured on any kernel: slots, the scheduler's programs, the ring.
 *
 * A thread runs these programs itself (BPF_PROG_RUN): the current task is its own.
 */
#include "emit.bpf.h"
#include "ipi.bpf.h"
#include "scheduler.bpf.h"
#include "threads.bpf.h"

char program_license[] SEC("license") = "GPL";

/* kernel/bpf/helpers.c, Linux 6.10: adopt() must not lose its CPU half way. */
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

/* The current thread serves that vCPU from now on. */
SEC("syscall")
int synthetic_adopt(struct unspin_synthetic *context)
{
	context->done = 0;
	bpf_preempt_disable();
	adopt_itself(context);
	bpf_preempt_enable();
	return 0;
}

/* Writes that many events about the current thread. */
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

/* What KVM's tracepoints tell of one IPI, in the order of its fast or its slow path, in an exit of its own. */
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

/* That VM is destroyed: its address may be another's next time. */
SEC("syscall")
int synthetic_destroy(struct unspin_synthetic *context)
{
	forget_vm(context->vm);
	return 0;
}
