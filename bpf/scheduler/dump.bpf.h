/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump.bpf.h - what the scheduler prints when the kernel removes it for an error (a task that was not run for
 * 5 s) or at SysRq-D: a line for each CPU and each runnable task, among the kernel's own (scx_dump_state(),
 * kernel/sched/ext/ext.c, Linux 7.2), and what is stored of its end for user space. Times in ns; positions by the shared queue's
 * clock.
 */
#ifndef UNSPIN_BPF_SCHEDULER_DUMP_H
#define UNSPIN_BPF_SCHEDULER_DUMP_H

#include "virtual_time.bpf.h"

struct unspin_steer_exit ended SEC(".data.ended");
char ended_dump[UNSPIN_STEER_DUMP_BYTES] SEC(".data.dump");

#define dump_line(text, ...)                                                                                           \
	({                                                                                                             \
		static char format[] = text "\n";                                                                      \
		unsigned long long values[] = {__VA_ARGS__};                                                           \
		scx_bpf_dump_bstr(format, values, sizeof(values));                                                     \
	})

SEC("struct_ops/dump")
void BPF_PROG(steer_dump, struct scx_dump_ctx *context)
{
	dump_line("policies for everyone %x, %llu wait in the shared queue of this CPU, one of %u",
		  control.everyone.policies, scx_bpf_dsq_nr_queued(shared_queue_at(bpf_get_smp_processor_id())),
		  options.domains);
}

SEC("struct_ops/dump_cpu")
void BPF_PROG(steer_dump_cpu, struct scx_dump_ctx *context, s32 cpu, bool idle)
{
	struct cpu_context *here = cpu_of(cpu);

	if (!here)
		return;
	dump_line("%llu wait in its queue, whose clock is %lld from the shared one; next %u, %lld",
		  scx_bpf_dsq_nr_queued(cpu), here->now_ns + here->offset_ns - shared_clock(cpu), here->next,
		  here->next_until_ns - bpf_ktime_get_ns());
}

SEC("struct_ops/dump_task")
void BPF_PROG(steer_dump_task, struct scx_dump_ctx *context, struct task_struct *p)
{
	struct task_context *task = context_of(p);

	if (!task)
		return;
	dump_line("queue %llx, home %x, position %lld, debt %llu, weight %llu", task->queue, task->home,
		  position_of(task) - shared_clock(task->home), task->debt_ns, task->effective >> UNSPIN_WEIGHT_SHIFT);
	dump_line("payer %u, lender %u, borrow kind %u, yielding %u, leaves %u, slice ends %lld", task->payer,
		  task->lender, task->borrow_kind, task->yielding, task->leaves,
		  task->slice_end_ns - bpf_ktime_get_ns());
}

/* The host is the kernel's own scheduler's again, and so is each task: the last that the kernel calls. */
SEC("struct_ops.s/exit")
void BPF_PROG(steer_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(ended.reason, sizeof(ended.reason), BPF_CORE_READ(info, reason));
	bpf_probe_read_kernel_str(ended.message, sizeof(ended.message), BPF_CORE_READ(info, msg));
	bpf_probe_read_kernel_str(ended_dump, sizeof(ended_dump), BPF_CORE_READ(info, dump));
	barrier(); /* a reader that sees a kind sees the rest */
	*(volatile u32 *)&ended.kind = BPF_CORE_READ(info, kind);
}

#endif
