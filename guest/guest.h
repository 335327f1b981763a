/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * guest.h - the micro guest's parts to each other: what every source of guest/ includes.
 *
 * `self` is always the vCPU that runs the call. What a handler does (handle_*) runs with interrupts off on the stack of
 * its class; everything else runs with interrupts on unless it says otherwise. No handler takes a lock.
 */
#ifndef UNSPIN_GUEST_GUEST_H
#define UNSPIN_GUEST_GUEST_H

#define UNSPIN_PLATFORM_HEADER "../guest/platform_guest.h"
#include "../abi/lock_kinds.h"
#include "../locks/platform.h"
#include "../locks/work.h"

/* guest.S: so many loops (1 or more) at CPL 3, with interrupts on. */
void enter_user(unspin_u32 loops);

/* boot.c: up to the first turn, and from the last. `first_tsc` was read at the first instruction. */
_Noreturn void guest_main(unspin_u32 number, unspin_u64 first_tsc);

/* panic.c: tells the VMM and never returns. */
_Noreturn void panic(enum unspin_guest_panic reason, unspin_u32 vector, unspin_u64 rip, unspin_u64 error);
_Noreturn void panic_exception(unspin_u64 vector, unspin_u64 error, unspin_u64 rip);
void inject_fault(enum unspin_guest_fault fault);

/* apic.c */
void apic_start(void);
void apic_start_tick(void);
void apic_send_all_others(unspin_u32 vector);
void apic_send(unspin_u32 vcpu, unspin_u32 vector);
void handle_tick(unspin_u64 interrupted_cs);
void handle_wake(unspin_u64 interrupted_cs);

/* shootdown.c */
void shootdown(struct vcpu *self);
void handle_shootdown(unspin_u64 interrupted_cs);
unspin_u64 shootdown_unanswered(const struct vcpu *self);

/* wakeup.c */
void barrier(struct vcpu *self, unspin_u32 *arrived);
void wake_all_to_stop(void);
void pass_token(struct vcpu *self);

/* steal_time.c */
void steal_time_register(struct vcpu *self);
unspin_u64 steal_time_ns(const struct vcpu *self);
unspin_u64 steal_time_preempted(void);

/* truth.c: ground truth of waits. */
void wait_begin(struct vcpu *self, enum unspin_wait_kind kind, unspin_u32 lock, unspin_u64 targets);
void wait_end(struct vcpu *self);
void wait_log(struct vcpu *self);
void answer_log(struct vcpu *self, unspin_u32 sender);

/* hint.c: what the host may read of this vCPU (abi/hint.h). */
void hint_start(struct vcpu *self);
void hint_register(struct vcpu *self);
void hint_asks_for_help(struct vcpu *self);
void hint_asks(struct vcpu *self, unspin_u32 lock);
void hint_holds(struct vcpu *self);
void hint_released(struct vcpu *self);
void hint_waits_for_answers(struct vcpu *self, unspin_u64 targets);
void hint_waits_no_more(struct vcpu *self);

/* turn.c */
void locks_prepare(void);
unspin_u32 lock_holder(unspin_u32 lock);
void turns_run(struct vcpu *self);

#endif
