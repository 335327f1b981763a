/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * emit.bpf.h - writes events into the ring buffer. A record holds one to three events; readers skip those of kind NONE.
 * Several events share a record because reserving and submitting one costs some 135 instructions, whatever its size.
 * Callers: programs with preemption or interrupts off, on the CPU whose number the event carries.
 */
#ifndef UNSPIN_BPF_OBSERVE_EMIT_H
#define UNSPIN_BPF_OBSERVE_EMIT_H

#include "maps.bpf.h"

static __always_inline void count_lost(u32 kind)
{
	/* In bounds: every caller's kind is a constant below UNSPIN_EVENT_KINDS. */
	__sync_fetch_and_add(&globals.lost_events[kind], 1);
}

/*
 * Writes an event about `thread`, seen at now_ns on this CPU; the arguments' meaning is that of `kind`
 * (abi/bpf/events.h).
 */
static __always_inline void fill(struct unspin_event *event, const struct unspin_observed_thread *thread, u32 kind,
				 u64 now_ns, u64 argument0, u64 argument1, u64 argument2)
{
	event->time_ns = now_ns;
	event->kind = kind;
	event->vm = thread->counters.vm;
	event->thread = thread->counters.thread;
	event->vcpu = thread->counters.vcpu;
	event->cpu = bpf_get_smp_processor_id();
	event->argument0 = argument0;
	event->argument1 = argument1;
	event->argument2 = argument2;
}

/* The reader polls: a wake-up would add context switches to the trace. */
static __always_inline void submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Writes an event about `thread` if user space has selected this kind; counts it as lost if the ring is full. */
static __always_inline void emit(const struct unspin_observed_thread *thread, u32 kind, u64 now_ns, u64 argument0,
				 u64 argument1, u64 argument2)
{
	struct unspin_event *event;

	if (!wants(kind))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count_lost(kind);
		return;
	}
	fill(event, thread, kind, now_ns, argument0, argument1, argument2);
	submit(event);
}

#endif
