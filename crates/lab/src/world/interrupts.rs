// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of guests: their delivery, and their handlers.

use super::{World, vcpu::Then};
use crate::{
    engine::NEVER_NS,
    ids::Cpu,
    trace_event::{ExitReason, Observer, TraceEvent, Vector},
};

impl<O: Observer> World<O> {
    /// Delivers an interrupt, sent on that pCPU, to a vCPU.
    pub(super) fn deliver(&mut self, from: Cpu, receiver: usize, vector: Vector) {
        let task = self.vcpus[receiver].task;
        if vector != Vector::Tick {
            let what = TraceEvent::IpiSent {
                receiver: task,
                vector,
            };
            self.emit(from, what);
        }
        self.vcpus[receiver].pending.add(vector);
        self.notify(Some(from), receiver);
    }

    /// A vCPU with a new pending interrupt is woken, or kicked out of its guest, or will find it at its next entry.
    fn notify(&mut self, from: Option<Cpu>, receiver: usize) {
        if self.vcpus[receiver].sleeps_until_ns != NEVER_NS {
            return; // its thread waits for a page, whatever interrupts its guest gets
        }
        let task = self.vcpus[receiver].task;
        match self.cpu_of(task) {
            Some(there) if Some(there) == from => {}
            Some(there) if self.vcpus[receiver].then == Then::PollOver => {
                // It polls: it reads the interrupt's word when the cache line has arrived.
                let seen_in_ns = u64::from(self.costs.line_socket_ns);
                self.account(there);
                let left_ns = &mut self.vcpus[receiver].host_left_ns;
                *left_ns = (*left_ns).min(seen_in_ns);
                self.plan(there);
            }
            Some(there) => self.kick(there, self.costs.ipi_ns.into()),
            None => {
                if self.scheduler.cpu_of(task).is_none() {
                    if let Some((waker, vcpu)) =
                        from.and_then(|cpu| Some((cpu, self.vcpu_on(cpu)?)))
                    {
                        self.account(waker);
                        self.vcpus[vcpu].host_left_ns += u64::from(self.costs.wakeup_ns);
                    }
                    self.wake(task, from);
                }
            }
        }
    }

    /// An interrupt arrives at the pCPU where its receiver runs.
    pub(super) fn interrupt_arrives(&mut self, cpu: Cpu, vcpu: usize) {
        // In the host, or in a handler with interrupts off: taken later.
        let known = &self.vcpus[vcpu];
        if known.inside && known.handler.is_none() {
            self.exit(cpu, vcpu, ExitReason::Interrupt, 0, Then::Enter);
        }
    }

    /// The guest takes the first pending interrupt; returns whether there was one.
    pub(super) fn take_interrupt(&mut self, cpu: Cpu, vcpu: usize) -> bool {
        if self.vcpus[vcpu].handler.is_some() {
            return true;
        }
        let Some(vector) = self.vcpus[vcpu].pending.take() else {
            return false;
        };
        self.emit(cpu, TraceEvent::InterruptTaken { vector });
        let handler_ns = self.costs.handler_ns.into();
        self.vcpus[vcpu].handler = Some((vector, handler_ns));
        true
    }

    /// A handler is done.
    pub(super) fn handler_done(&mut self, cpu: Cpu, vcpu: usize) {
        let Some((vector, _)) = self.vcpus[vcpu].handler.take() else {
            return;
        };
        match vector {
            Vector::Shootdown => self.answer_all(cpu, vcpu),
            Vector::Tick => {
                self.vcpus[vcpu].statistics.ticks += 1;
                self.guest_tick(cpu, vcpu);
            }
            Vector::Reschedule => {}
        }
        self.emit(cpu, TraceEvent::InterruptDone);
        // HLT returns after an interrupt has been handled.
        self.unblock(vcpu);
        if !self.take_interrupt(cpu, vcpu) {
            self.go_on(cpu, vcpu);
        }
    }

    /// Answers all senders of shootdown requests.
    fn answer_all(&mut self, cpu: Cpu, vcpu: usize) {
        let vm = self.vcpus[vcpu].vm as usize;
        let first = self.vms[vm].first;
        let mut senders = std::mem::take(&mut self.vcpus[vcpu].senders);
        while senders != 0 {
            let sender = senders.trailing_zeros();
            senders &= senders - 1;
            let word = self.vms[vm].memory.unanswered(sender);
            let left = self.vms[vm].memory.get(word);
            self.write(cpu, (first + sender) as usize, word, left.wrapping_sub(1));
            self.vcpus[vcpu].statistics.shootdowns_answered += 1;
        }
    }

    /// The engine's slot for a vCPU's timers.
    pub(super) fn timer_slot(&self, vcpu: usize) -> u32 {
        (self.cpus.len() + vcpu) as u32
    }

    /// Sets the next event of a vCPU's timers.
    pub(super) fn set_timer(&mut self, vcpu: usize) {
        let known = &self.vcpus[vcpu];
        let at_ns = known.timer_ns.min(known.page_ns).min(known.sleeps_until_ns);
        let slot = self.timer_slot(vcpu);
        self.tree.set(slot, at_ns);
    }

    /// A timer of a vCPU is due: a page has arrived, or the guest's tick.
    pub(super) fn timer_event(&mut self, vcpu: usize) {
        let now_ns = self.now_ns;
        let period_ns = self.vms[self.vcpus[vcpu].vm as usize].tick_period_ns;
        let known = &mut self.vcpus[vcpu];
        if known.sleeps_until_ns <= now_ns {
            known.sleeps_until_ns = NEVER_NS;
            let task = known.task;
            self.set_timer(vcpu);
            self.wake(task, None);
            return;
        }
        let vector = if known.page_ns <= now_ns {
            known.page_ns = NEVER_NS;
            Vector::Reschedule
        } else {
            known.timer_ns = now_ns.saturating_add(period_ns).min(NEVER_NS);
            Vector::Tick
        };
        known.pending.add(vector);
        self.set_timer(vcpu);
        let task = self.vcpus[vcpu].task;
        // The host's timer interrupt is on the pCPU where the vCPU runs: no delivery time.
        match self.cpu_of(task) {
            Some(cpu) if self.vcpus[vcpu].then != Then::PollOver => self.kick(cpu, 0),
            _ => self.notify(None, vcpu),
        }
    }
}
