/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * guest.h - the functions that the sources of guest/ call of each other; included by all of them.
 *
 * `self` is always the vCPU that executes the call. Handlers (handle_*) run with interrupts off on the stack of their
 * class; other functions run with interrupts on unless noted. No handler takes a lock.
 */
#ifndef UNSPIN_GUEST_GUEST_H
#define UNSPIN_GUEST_GUEST_H

#define UNSPIN_PLATFORM_HEADER "../../guest/platform_guest.h"
#include "../abi/guest/lock_kinds.h"
#include "../locks/parts/ecs.h"
#include "../locks/platform/contract.h"
#include "../locks/parts/work.h"

/* guest.S: runs `loops` iterations of the work loop (1 or more) at CPL 3, with interrupts on. */
void enter_user(unspin_u32 loops);

/* boot.c: a vCPU from its start to its end. `first_tsc` was read by the first instruction. */
_Noreturn void guest_main(unspin_u32 number, unspin_u64 first_tsc);

/* panic.c: reports to the VMM and never returns. */
_Noreturn void panic(enum unspin_guest_panic reason, unspin_u32 vector, unspin_u64 rip, unspin_u64 error);
_Noreturn void panic_exception(unspin_u64 vector, unspin_u64 error, unspin_u64 rip);
void inject_fault(enum unspin_guest_fault fault);

/* apic.c */
void apic_start(void);
void apic_start_tick(void);
void apic_send_all_others(unspin_u32 vector);
void apic_send(unspin_u32 vcpu, unspin_u32 vector);
void handle_tick(struct interrupt_frame *frame);
void handle_wake(struct interrupt_frame *frame);

/* shootdown.c */
void shootdown(struct vcpu *self);
void handle_shootdown(struct interrupt_frame *frame);
unspin_u64 shootdown_unanswered(const struct vcpu *self);

/* wakeup.c */
void barrier(struct vcpu *self, unspin_u32 *arrived);
void wake_all_to_stop(void);
void pass_token(struct vcpu *self);

/* steal_time.c */
void steal_time_register(struct vcpu *self);
unspin_u64 steal_time_ns(const struct vcpu *self);
unspin_u64 steal_time_preempted(void);

/* ground_truth.c: ground truth of waits. */
void wait_begin(struct vcpu *self, enum unspin_wait_kind kind, unspin_u32 lock, unspin_u64 targets);
void wait_end(struct vcpu *self);
void wait_shift(struct vcpu *self, unspin_u64 iterations);
void wait_log(struct vcpu *self);
void answer_log(struct vcpu *self, unspin_u32 sender);

/* pv_page.c: what this vCPU publishes to the host (abi/guest/pv_page.h). */
void pv_page_start(struct vcpu *self);
void pv_page_register(struct vcpu *self);
void pv_page_asks(struct vcpu *self, unspin_u32 lock);
void pv_page_holds(struct vcpu *self);
void pv_page_released(struct vcpu *self);
void pv_page_gives_back(struct vcpu *self);
void pv_page_waits_for_answers(struct vcpu *self, unspin_u64 targets);
void pv_page_waits_no_more(struct vcpu *self);

/* park.c; the functions that locks call are declared in platform_guest.h. */
void park_start(struct vcpu *self);
void vcpu_wake(struct vcpu *self, unspin_u32 target);
void vcpu_halt(struct vcpu *self);

/* Counts the read of a word before a HLT or sleep as one spin of the wait, as platform_wait_while() does. */
static inline void count_spin(struct vcpu *self)
{
	count_one(&self->statistics->spin_count);
	if (self->statistics->spin_count == self->iteration.notice_at_spins)
		wait_noticed(self);
}

/* task.c */
void tasks_start(struct vcpu *self);
void tasks_finish(struct vcpu *self);
void task_yield(struct vcpu *self);
void task_tick(struct vcpu *self, struct interrupt_frame *frame);
void task_preempted(void);

/* Until the matching preempt_enable() no other task runs on this vCPU. Nests. */
static inline void preempt_disable(struct vcpu *self)
{
	self->preempt_count++;
	__asm__ volatile("" : : : "memory");
}

static inline void preempt_enable(struct vcpu *self)
{
	__asm__ volatile("" : : : "memory");
	if (--self->preempt_count == 0 && *(volatile unspin_u32 *)&self->need_switch)
		task_yield(self);
}

/* preemption.c: ground truth of preemptions. */
void preemption_count(struct vcpu *self, unspin_u64 stolen_ns);

static inline void preemption_poll(struct vcpu *self)
{
	unspin_u64 stolen_ns = *(volatile unspin_u64 *)&self->steal_time.steal_ns;

	if (stolen_ns != *(volatile unspin_u64 *)&self->seen_stolen_ns)
		preemption_count(self, stolen_ns);
}

/* section.c: critical sections by class (eCS, ruling 23). */
struct saved_sections {
	struct ecs_saved ecs;
	unspin_u32 critical, holding, waiting;
};
void section_begins(struct vcpu *self, enum unspin_section_class class);
void section_ends(struct vcpu *self, enum unspin_section_class class);
void sections_save(struct vcpu *self, struct saved_sections *saved);
void sections_restore(struct vcpu *self, const struct saved_sections *saved);
void interrupt_begins(struct vcpu *self);
void interrupt_ends(struct vcpu *self);

/* workload.c */
_Bool reads(struct vcpu *self);
void workload_prepare(void);
void read_page(struct vcpu *self, unspin_u32 loops);
void replace_page(struct vcpu *self);
void ping_pong(struct vcpu *self);
void ping_pong_ends(struct vcpu *self);
void handle_work(struct interrupt_frame *frame);

/* iteration.c */
void locks_prepare(void);
unspin_u32 lock_holder(unspin_u32 lock);
void iterations_run(struct vcpu *self);

#endif
