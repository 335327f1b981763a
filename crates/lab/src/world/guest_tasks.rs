// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's own scheduler: several tasks on one vCPU take turns iteration by iteration, switched at guest ticks or
//! when one blocks. Kernel code that waits for a lock, holds one or waits for answers is not preempted, as in a guest
//! without preemption.

use unspin_policy::WaitExit;

use super::{
    World,
    vcpu::{Base, GuestTask, Then},
};
use crate::{
    engine::NEVER_NS,
    ids::Cpu,
    trace_event::{ExitReason, Observer, TraceEvent},
};

impl<O: Observer> World<O> {
    /// Switches the vCPU to another runnable task; returns whether there was one. The previous one waits in its present
    /// state.
    pub(super) fn switch_guest_task(&mut self, cpu: Cpu, vcpu: usize) -> bool {
        let cost_ns = u64::from(self.costs.guest_switch_ns);
        let known = &mut self.vcpus[vcpu];
        let Some(place) = known.others.iter().position(GuestTask::is_ready) else {
            return false;
        };
        let Some(mut next) = known.others.remove(place) else {
            return false;
        };
        std::mem::swap(&mut known.port, &mut next.port);
        std::mem::swap(&mut known.base, &mut next.base);
        std::mem::swap(&mut known.user, &mut next.user);
        std::mem::swap(&mut known.debt_ns, &mut next.debt_ns);
        let was_user = next.user;
        known.others.push_back(next);
        known.statistics.guest_switches += 1;
        match &mut known.base {
            Base::Work { left_ns } => *left_ns += cost_ns,
            _ => known.debt_ns += cost_ns,
        }
        match (was_user, known.user) {
            (false, true) => self.emit(cpu, TraceEvent::User),
            (true, false) => self.emit(cpu, TraceEvent::Kernel),
            _ => {}
        }
        true
    }

    /// At a guest tick: the next task runs, unless this one may not be preempted.
    pub(super) fn guest_tick(&mut self, cpu: Cpu, vcpu: usize) {
        let known = &self.vcpus[vcpu];
        if known.critical == 0 && matches!(known.base, Base::Work { .. }) {
            self.switch_guest_task(cpu, vcpu);
        }
    }

    /// An event that blocked tasks may wait for: they read their words again when they run.
    pub(super) fn unblock(&mut self, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        let page_is_there = known.page_ns == NEVER_NS;
        let others = known.others.iter_mut().map(|other| &mut other.base);
        for base in others.chain([&mut known.base]) {
            if *base == Base::Halted || (*base == Base::Faulted && page_is_there) {
                *base = Base::Answer(0);
            }
        }
    }

    /// The current task blocks until an interrupt: another task runs, or the vCPU halts.
    pub(super) fn guest_blocks(&mut self, cpu: Cpu, vcpu: usize) {
        if !self.vcpus[vcpu].pending.is_empty() {
            self.take_interrupt(cpu, vcpu);
        } else if !self.switch_guest_task(cpu, vcpu) {
            self.threshold_exit(vcpu, WaitExit::Halt);
            let work_ns = self.costs.halt_ns;
            self.exit(cpu, vcpu, ExitReason::Halt, work_ns, Then::Halt);
        }
    }

    /// The current task's iterations are done.
    pub(super) fn guest_task_done(&mut self, cpu: Cpu, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        known.base = Base::Done;
        if known.others.iter().all(|other| other.base == Base::Done) {
            known.timer_ns = NEVER_NS;
            self.unfinished -= 1;
            self.set_timer(vcpu);
        }
        self.guest_blocks(cpu, vcpu);
    }

    /// An iteration is done; periodically the guest touches a page that the host must fetch. Returns whether it did.
    pub(super) fn touches_a_page(&mut self, cpu: Cpu, vcpu: usize) -> bool {
        let every_iterations = self.host.page_fault_every_iterations;
        let known = &mut self.vcpus[vcpu];
        if every_iterations == 0 || known.statistics.operations % u64::from(every_iterations) != 0 {
            return false;
        }
        known.statistics.page_faults += 1;
        // The guest is notified of one page at a time: a second fault waits in the host.
        let notified = self.host.async_page_faults && known.page_ns == NEVER_NS;
        known.base = if notified {
            Base::Faulted
        } else {
            Base::Answer(0)
        };
        let work_ns = self.costs.page_fault_ns;
        self.exit(
            cpu,
            vcpu,
            ExitReason::PageFault,
            work_ns,
            Then::Fault(notified),
        );
        true
    }

    /// The host fetches the page: the vCPU's thread sleeps, or the guest is notified and runs something else.
    pub(super) fn fault(&mut self, cpu: Cpu, vcpu: usize, notified: bool) {
        let at_ns = self.now_ns + self.host.page_fetch_ns;
        let known = &mut self.vcpus[vcpu];
        known.page_ns = if notified { at_ns } else { known.page_ns };
        known.sleeps_until_ns = if notified { NEVER_NS } else { at_ns };
        self.set_timer(vcpu);
        if !notified {
            self.emit(cpu, TraceEvent::Halted);
            self.block(cpu);
        }
    }
}
