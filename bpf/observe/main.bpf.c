// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - counts and records, per vCPU thread, what KVM and the scheduler do with it.
 *
 * The context of each program matters: while a program is preempted, the kernel skips every other run of it on that
 * CPU. kvm_entry and kvm_exit fire with interrupts off (svm_vcpu_run(), vmx_vcpu_run()), sched_switch and sched_wakeup
 * under locks taken with interrupts off, and kprobe.multi programs run with preemption off: none of these is skipped.
 * Programs of type fentry and fexit are preemptible: on_spin as fexit missed 1.3 % of its runs. So pause-loop exits are
 * counted by exit code in kvm_exit, and only kvm_destroy_vm has a fentry program. The kernel counts skipped runs
 * (bpf_prog_info.recursion_misses), and user space shows them. Checked in Linux 7.2.
 *
 * Bounds of every read: `thread` is a map value, within its map by the verifier's check; arguments of tp_btf and fentry
 * programs are typed by BTF and checked for NULL; everything else is read through READ() (maps.bpf.h), which gives 0
 * instead of faulting.
 */
#include "emit.bpf.h"
#include "guest_exit.bpf.h"
#include "pv_pages.bpf.h"
#include "ipi.bpf.h"
#include "latency.bpf.h"
#include "scheduler.bpf.h"
#include "serving.bpf.h"
#include "threads.bpf.h"

char program_license[] SEC("license") = "GPL";

static __always_inline void count_pause_exit(struct unspin_observed_thread *thread, u32 mode)
{
	thread->counters.ple_exits++;
	if (mode == UNSPIN_MODE_UNKNOWN)
		thread->counters.ple_exits_unknown_mode++;
	else if (mode == UNSPIN_MODE_USER)
		thread->counters.ple_exits_user++;
}

static __always_inline void fill_pause_exit(struct unspin_event *event, struct unspin_observed_thread *thread,
					    const struct guest_exit *exit, u64 now_ns)
{
	u64 others = thread->other_exits, interrupts = thread->interrupt_exits, inside_ns = 0;

	if (thread->entered_guest_ns && now_ns > thread->entered_guest_ns)
		inside_ns = now_ns - thread->entered_guest_ns;
	fill(event, thread, UNSPIN_EVENT_PAUSE_EXIT, now_ns, exit->rip, halves(exit->mode, exit->window),
	     at_most(inside_ns, 0xffffffff) | at_most(others, 0xffff) << 32 | at_most(interrupts, 0xffff) << 48);
}

/* Writes a pause-loop exit and, if the guest has a pv page, its contents, in one record. */
static __always_inline void emit_pause_exit(struct unspin_observed_thread *thread, const struct guest_exit *exit,
					    u64 now_ns)
{
	struct unspin_event *record;
	struct pv_page_words words;
	bool pv_page;

	if (!wants(UNSPIN_EVENT_PAUSE_EXIT))
		return;
	pv_page = read_pv_page(thread, &words);
	if (pv_page) {
		record = bpf_ringbuf_reserve(&events, 2 * sizeof(*record), 0);
		if (record)
			fill_pv_page(record + 1, thread, now_ns, &words);
		else
			count_lost(UNSPIN_EVENT_PV_PAGE);
	} else {
		record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
	}
	if (record) {
		fill_pause_exit(record, thread, exit, now_ns);
		submit(record);
	} else {
		count_lost(UNSPIN_EVENT_PAUSE_EXIT);
	}
	thread->other_exits = 0;
	thread->interrupt_exits = 0;
}

/*
 * Keeps what later events say about this exit, and writes the exit's own events. Called only if some events are wanted.
 */
static __always_inline void record_exit(struct unspin_observed_thread *thread, const struct guest_exit *exit, u32 isa,
					u64 now_ns)
{
	thread->isa = isa;
	thread->exit_code = exit->code == UNSPIN_UNKNOWN ? UNSPIN_UNKNOWN_HALF : exit->code;
	thread->handled_ns = 0;
	thread->after_pause = exit->pause;
	emit(thread, UNSPIN_EVENT_EXIT, now_ns, exit->code, 0, 0);
	if (exit->pause)
		emit_pause_exit(thread, exit, now_ns);
	else if (exit->interrupt)
		thread->interrupt_exits++;
	else
		thread->other_exits++;
}

SEC("tp_btf/kvm_exit")
int BPF_PROG(on_kvm_exit, struct kvm_vcpu *vcpu, u32 isa)
{
	struct unspin_observed_thread *thread;
	struct guest_exit exit;
	u64 now_ns;

	if (!vcpu)
		return 0;
	now_ns = bpf_ktime_get_ns();
	thread = thread_serving(vcpu, now_ns);
	if (!thread) {
		__sync_fetch_and_add(&globals.unobserved_exits, 1);
		return 0;
	}
	thread->counters.exits++;
	thread->left_guest_ns = now_ns;
	/*
	 * event_mask is constant to the verifier, which drops the branch that is not taken: counters alone stay cheap.
	 */
	if (!options.event_mask) {
		read_exit(vcpu, isa, &exit, 0);
		if (exit.pause)
			count_pause_exit(thread, exit.mode);
	} else {
		read_exit(vcpu, isa, &exit, 1);
		if (exit.pause)
			count_pause_exit(thread, exit.mode);
		record_exit(thread, &exit, isa, now_ns);
	}
	return 0;
}

/* Called when the guest is entered again: kvm_vcpu_on_spin(), if it was called, has returned. */
static __always_inline void end_on_spin(struct unspin_observed_thread *thread)
{
	if (!thread->inside_on_spin)
		return;
	thread->inside_on_spin = 0;
	if (!thread->on_spin_yields)
		thread->counters.on_spin_no_yield++;
}

static __always_inline void record_entry(struct unspin_observed_thread *thread, u64 now_ns, u64 outside_ns)
{
	thread->entered_guest_ns = now_ns;
	emit(thread, UNSPIN_EVENT_ENTRY, now_ns, outside_ns, 0, 0);
	if (!thread->after_pause)
		return;
	thread->after_pause = 0;
	emit(thread, UNSPIN_EVENT_PAUSE_ENTRY, now_ns, outside_ns, thread->handled_ns ? thread->handled_ns : outside_ns,
	     0);
}

SEC("tp_btf/kvm_entry")
int BPF_PROG(on_kvm_entry, struct kvm_vcpu *vcpu)
{
	struct unspin_observed_thread *thread;
	u64 now_ns, outside_ns = 0;

	if (!vcpu)
		return 0;
	now_ns = bpf_ktime_get_ns();
	thread = thread_serving(vcpu, now_ns);
	if (!thread)
		return 0;
	end_on_spin(thread);
	if (thread->left_guest_ns) {
		outside_ns = now_ns > thread->left_guest_ns ? now_ns - thread->left_guest_ns : 0;
		thread->left_guest_ns = 0;
		thread->counters.exit_to_entry_ns += outside_ns;
		/* In bounds: latency_bucket() is below UNSPIN_LATENCY_BUCKETS; the mask shows it to the verifier. */
		thread->counters.exit_to_entry_count[latency_bucket(outside_ns) & (UNSPIN_LATENCY_BUCKETS - 1)]++;
	}
	if (options.event_mask)
		record_entry(thread, now_ns, outside_ns);
	return 0;
}

SEC("kprobe.multi/kvm_vcpu_on_spin")
int on_vcpu_on_spin(struct pt_regs *registers)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());

	if (!thread)
		return 0;
	thread->counters.on_spin++;
	thread->inside_on_spin = 1;
	thread->on_spin_yields = 0;
	if (wants(UNSPIN_EVENT_ON_SPIN))
		emit(thread, UNSPIN_EVENT_ON_SPIN, bpf_ktime_get_ns(), 0, 0, 0);
	return 0;
}

/* Keeps the target of yield_to() until it returns. Loaded only when events of yield_to() are wanted. */
SEC("kprobe.multi/yield_to")
int on_yield_to(struct pt_regs *registers)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());

	if (thread)
		thread->yield_to_target = registers->di;
	return 0;
}

static __always_inline void emit_yield_to(struct unspin_observed_thread *thread, s64 result)
{
	/*
	 * yield_to()'s caller holds a reference to the target. READ() would be safe without: it gives 0 where it fails.
	 */
	struct task_struct *task = (struct task_struct *)thread->yield_to_target;
	u32 target = READ(options.direct_reads, task, pid);
	u32 *vcpu = bpf_map_lookup_elem(&vcpu_of_thread, &target);

	emit(thread, UNSPIN_EVENT_YIELD_TO, bpf_ktime_get_ns(), result, vcpu ? *vcpu : UNSPIN_UNKNOWN, target);
}

/* yield_to() has other callers (the hypercall KVM_HC_SCHED_YIELD); only calls by kvm_vcpu_on_spin() are counted. */
SEC("kretprobe.multi/yield_to")
int on_yield_to_return(struct pt_regs *registers)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());
	int result = (int)registers->ax;

	if (!thread || !thread->inside_on_spin)
		return 0;
	thread->on_spin_yields++;
	if (result > 0)
		thread->counters.yield_to_boosted++;
	else if (result == 0)
		thread->counters.yield_to_refused++;
	else
		thread->counters.yield_to_failed++;
	if (wants(UNSPIN_EVENT_YIELD_TO))
		emit_yield_to(thread, result);
	return 0;
}

SEC("tp_btf/kvm_apic_ipi")
int BPF_PROG(on_kvm_apic_ipi, u32 icr_low, u32 destination)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());

	if (thread)
		ipi_sent(thread, &thread->ipi, thread->counters.exits, icr_low, destination);
	return 0;
}

static __always_inline void interrupt_posted(struct unspin_observed_thread *thread, u32 receiver, u16 delivery_mode,
					     u8 vector)
{
	interrupt_accepted(thread, &thread->ipi, thread->counters.exits, thread->counters.vcpu, receiver, delivery_mode,
			   vector);
}

/*
 * arch/x86/kvm/lapic.c: __apic_accept_irq(apic, delivery_mode, vector, ...) fires kvm_apic_accept_irq before anything
 * else. A program at the tracepoint is preemptible (seen on Linux 7.2), and while it waits for its CPU all its runs there
 * are missed; this one runs with preemption off.
 */
SEC("kprobe.multi/__apic_accept_irq")
int on_apic_accept_irq(struct pt_regs *registers)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());
	/* The caller's, and alive. READ() would be safe without: it gives 0 where it fails. */
	struct kvm_lapic *apic = (struct kvm_lapic *)registers->di;
	struct kvm_vcpu *receiver;

	if (!thread)
		return 0;
	receiver = READ(options.direct_reads, apic, vcpu);
	interrupt_posted(thread, READ(options.direct_reads, receiver, vcpu_id), registers->si, registers->dx);
	return 0;
}

/* The same where that function, which is static, was inlined or renamed by the compiler. */
SEC("tp_btf/kvm_apic_accept_irq")
int BPF_PROG(on_kvm_apic_accept_irq, u32 receiver, u16 delivery_mode, u16 trigger_mode, u8 vector)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());

	if (thread)
		interrupt_posted(thread, receiver, delivery_mode, vector);
	return 0;
}

SEC("tp_btf/kvm_hypercall")
int BPF_PROG(on_kvm_hypercall, unsigned long number, unsigned long a0, unsigned long a1, unsigned long a2,
	     unsigned long a3)
{
	struct unspin_observed_thread *thread = thread_of_running(bpf_get_current_task_btf());

	if (!thread)
		return 0;
	if (wants(UNSPIN_EVENT_IPI) && (u32)number == KVM_HC_SEND_IPI)
		announce_ipi(&thread->ipi, thread->counters.exits, a3, UNSPIN_IPI_HYPERCALL, UNSPIN_UNKNOWN);
	else if (wants(UNSPIN_EVENT_PV_PAGE) && (u32)number == UNSPIN_HYPERCALL_REGISTER_PV_PAGE)
		register_pv_page(thread, a0);
	return 0;
}

SEC("fentry/kvm_destroy_vm")
int BPF_PROG(on_destroy_vm, struct kvm *kvm)
{
	forget_vm((u64)kvm);
	return 0;
}
