// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hypervisor: exits, their handling, and entries. At a HLT a vCPU polls for a while, as long as polling has paid
//! lately, and then its thread sleeps (`kvm_vcpu_halt()`, virt/kvm/kvm_main.c, Linux 7.2).

use unspin_policy::auto::StretchEnd;

use super::{
    World,
    vcpu::{Sending, Then},
};
use crate::{
    ids::Cpu,
    trace_event::{ExitReason, Observer, TraceEvent, Vector},
};

/// Number of receivers that one write to the x2APIC's ICR reaches.
const CLUSTER: u32 = 16;

impl<O: Observer> World<O> {
    /// An exit; after `work_ns` of the host's work `then` follows.
    pub(super) fn exit(
        &mut self,
        cpu: Cpu,
        vcpu: usize,
        reason: ExitReason,
        work_ns: u32,
        then: Then,
    ) {
        self.emit(cpu, TraceEvent::Exit { reason });
        self.meter_exit(
            vcpu,
            match reason {
                ExitReason::Interrupt => StretchEnd::Interrupted,
                _ => StretchEnd::Other,
            },
        );
        let exit_ns = self.costs.exit_ns;
        self.leave_guest(vcpu, exit_ns + work_ns, then);
    }

    pub(super) fn leave_guest(&mut self, vcpu: usize, work_ns: u32, then: Then) {
        let entry_ns = u64::from(self.costs.entry_ns);
        self.looks_away(vcpu);
        let now_ns = self.now_ns;
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.inside = false;
        vcpu.steered.exit_ns = now_ns;
        vcpu.then = then;
        vcpu.host_left_ns = u64::from(work_ns);
        if then == Then::Enter {
            vcpu.host_left_ns += entry_ns;
        }
    }

    /// A host interrupt causes an exit that takes this long; a vCPU that is in the host is delayed.
    pub(super) fn interrupt_the_guest(&mut self, cpu: Cpu, vcpu: usize, work_ns: u32) {
        if self.vcpus[vcpu].inside {
            self.exit(cpu, vcpu, ExitReason::Interrupt, work_ns, Then::Enter);
        } else {
            self.vcpus[vcpu].host_left_ns += u64::from(work_ns);
        }
    }

    /// Enters the guest: only the entry's cost is left.
    pub(super) fn enter_soon(&mut self, vcpu: usize) {
        let entry_ns = u64::from(self.costs.entry_ns);
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.then = Then::Enter;
        vcpu.host_left_ns = entry_ns;
    }

    /// The host's work for that vCPU is done.
    pub(super) fn host_done(&mut self, cpu: Cpu, vcpu: usize) {
        match self.vcpus[vcpu].then {
            Then::Enter => self.enter(cpu, vcpu),
            Then::OnSpin => {
                // The guest is entered when the vCPU runs again, whichever task runs in between.
                self.enter_soon(vcpu);
                self.on_spin(cpu, vcpu);
            }
            Then::Halt => self.halt(cpu, vcpu),
            Then::PollOver => self.poll_over(cpu, vcpu),
            Then::Send(what) => {
                self.enter_soon(vcpu);
                self.send(cpu, vcpu, what);
            }
            Then::GiveBack => {
                self.enter_soon(vcpu);
                self.give_back(cpu);
            }
            Then::Fault(notified) => {
                self.enter_soon(vcpu);
                self.fault(cpu, vcpu, notified);
            }
            Then::Help => {
                self.enter_soon(vcpu);
                self.help(cpu, vcpu);
            }
            Then::HelpNamed(target) => {
                self.enter_soon(vcpu);
                self.help_named(cpu, vcpu, target as usize);
            }
        }
    }

    fn enter(&mut self, cpu: Cpu, vcpu: usize) {
        self.emit(cpu, TraceEvent::Entry);
        self.vcpus[vcpu].inside = true;
        self.meter_enter(vcpu);
        self.vcpus[vcpu].ends_wait = false;
        self.notify_spin_count(vcpu);
        let pending_ipi = &mut self.vcpus[vcpu].pending_ipi;
        let spins = std::mem::take(&mut pending_ipi.spins);
        pending_ipi.eligible &= !spins;
        if spins {
            self.begin_samples(cpu, vcpu, true);
        }
        self.pause_loop_entered(vcpu);
        self.poll_at_entry(cpu, vcpu);
        if !self.take_interrupt(cpu, vcpu) {
            self.go_on(cpu, vcpu);
        }
    }

    /// Sends the guest's interrupt.
    fn send(&mut self, cpu: Cpu, vcpu: usize, what: Sending) {
        let (vm, number) = (self.vcpus[vcpu].vm as usize, self.vcpus[vcpu].number);
        let (first, count) = (self.vms[vm].first, self.vms[vm].vcpus);
        let receiver = match what {
            Sending::Shootdown => return self.send_shootdown(cpu, vcpu),
            Sending::Token => (first + (number + 1) % count) as usize,
            Sending::Kick(other) | Sending::Wake(other) => (first + other) as usize,
        };
        match what {
            Sending::Token => {
                self.vcpus[receiver].tokens += 1;
                self.vcpus[vcpu].statistics.wakeups += 1;
            }
            Sending::Kick(_) => {
                self.vcpus[receiver].kicked = true;
                self.vcpus[vcpu].statistics.kicks += 1;
            }
            _ => self.vcpus[vcpu].statistics.wakeups += 1,
        }
        if receiver == vcpu {
            self.unblock(vcpu);
        } else {
            self.record_ipi(vcpu, receiver, Vector::Reschedule);
            self.deliver(cpu, receiver, Vector::Reschedule);
        }
    }

    /// To all others: flush and answer (kvm_flush_tlb_multi(), kvm_smp_send_call_func_ipi(), arch/x86/kernel/kvm.c).
    fn send_shootdown(&mut self, cpu: Cpu, vcpu: usize) {
        let (vm, number) = (self.vcpus[vcpu].vm as usize, self.vcpus[vcpu].number);
        let (first, count) = (self.vms[vm].first as usize, self.vms[vm].vcpus as usize);
        let paravirtual = self.host.paravirtual;
        let (mut sent, mut left_out, mut descheduled) = (0u32, 0u32, None);
        for receiver in (first..first + count).filter(|other| *other != vcpu) {
            let off = self.cpu_of(self.vcpus[receiver].task).is_none();
            if off && paravirtual.tlb_flush {
                left_out += 1;
                continue;
            }
            sent += 1;
            descheduled = descheduled.or(off.then_some(receiver));
            self.vcpus[receiver].senders |= 1 << number;
            self.record_ipi(vcpu, receiver, Vector::Shootdown);
            self.deliver(cpu, receiver, Vector::Shootdown);
        }
        if left_out != 0 {
            let word = self.vms[vm].memory.unanswered(number);
            let left = self.vms[vm].memory.get(word);
            self.write(cpu, vcpu, word, left.wrapping_sub(left_out));
        }
        let mut more_ns = match paravirtual.send_ipi {
            true => self.costs.hypercall_ns,
            false => {
                let one_ns = self.costs.exit_ns + self.costs.entry_ns + self.costs.ipi_send_ns;
                sent.saturating_sub(1) / CLUSTER * one_ns
            }
        };
        self.vcpus[vcpu].statistics.shootdowns += 1;
        if let Some(receiver) = descheduled.filter(|_| paravirtual.sched_yield) {
            more_ns += self.costs.exit_ns + self.costs.entry_ns + self.costs.hypercall_ns;
            let target = self.vcpus[receiver].task;
            self.yield_to(cpu, vcpu, target, Some(0));
        }
        self.vcpus[vcpu].host_left_ns += u64::from(more_ns);
    }
}

/// `halt_poll_ns_grow_start`, and the factors `halt_poll_ns_grow` and `halt_poll_ns_shrink` (2 since 6.11), docs/facts.md#guest.
const GROW_START_NS: u32 = 10_000;
const GROW: u32 = 2;
const SHRINK: u32 = 2;

/// The polling time after a halt of that length, at most `most_ns`.
fn next_poll_ns(poll_ns: u32, block_ns: u64, most_ns: u32) -> u32 {
    if block_ns <= u64::from(poll_ns) {
        poll_ns
    } else if poll_ns != 0 && block_ns > u64::from(most_ns) {
        let shrunk_ns = poll_ns / SHRINK;
        if shrunk_ns < GROW_START_NS {
            0
        } else {
            shrunk_ns
        }
    } else if poll_ns < most_ns && block_ns < u64::from(most_ns) {
        (poll_ns.saturating_mul(GROW))
            .max(GROW_START_NS)
            .min(most_ns)
    } else {
        poll_ns
    }
}

impl<O: Observer> World<O> {
    pub(super) fn halt(&mut self, cpu: Cpu, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        known.halted_since_ns = Some(self.now_ns);
        if !known.pending.is_empty() {
            self.halt_over(vcpu);
            self.enter_soon(vcpu);
        } else if known.halt_poll_ns != 0 {
            known.then = Then::PollOver;
            known.host_left_ns = known.halt_poll_ns.into();
        } else {
            self.sleep(cpu, vcpu);
        }
    }

    pub(super) fn poll_over(&mut self, cpu: Cpu, vcpu: usize) {
        if self.vcpus[vcpu].pending.is_empty() {
            self.sleep(cpu, vcpu);
        } else {
            self.halt_over(vcpu);
            self.enter_soon(vcpu);
        }
    }

    fn sleep(&mut self, cpu: Cpu, vcpu: usize) {
        self.vcpus[vcpu].statistics.halts += 1;
        self.enter_soon(vcpu);
        self.emit(cpu, TraceEvent::Halted);
        self.block(cpu);
    }

    /// The halt has ended, during polling or after a sleep: adjusts the next polling time.
    pub(super) fn halt_over(&mut self, vcpu: usize) {
        let (now_ns, most_ns) = (self.now_ns, self.host.halt_poll_ns);
        let known = &mut self.vcpus[vcpu];
        if let Some(since_ns) = known.halted_since_ns.take() {
            known.halt_poll_ns = next_poll_ns(known.halt_poll_ns, now_ns - since_ns, most_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_grows_while_it_would_have_paid_and_shrinks_after_long_halts() {
        let most_ns = 200_000;
        assert_eq!(next_poll_ns(0, 50_000, most_ns), GROW_START_NS);
        assert_eq!(next_poll_ns(10_000, 50_000, most_ns), 20_000);
        assert_eq!(next_poll_ns(160_000, 190_000, most_ns), most_ns);
        assert_eq!(next_poll_ns(40_000, 30_000, most_ns), 40_000);
        assert_eq!(next_poll_ns(40_000, 5_000_000, most_ns), 20_000);
        assert_eq!(next_poll_ns(10_000, 5_000_000, most_ns), 0);
        assert_eq!(next_poll_ns(0, 5_000_000, most_ns), 0);
        assert_eq!(next_poll_ns(0, 5_000, 0), 0, "switched off");
    }
}
