// SPDX-License-Identifier: MIT OR Apache-2.0
//! Borrowed time, by a loan or a grant: how it begins, when it is polled, how it ends (`bpf/scheduler/slice_end.bpf.h`,
//! `bpf/scheduler/kvm.bpf.h`).

use unspin_policy::steering::Decision;

use crate::world::{World, vcpu::Then};
use crate::{
    engine::NEVER_NS,
    ids::Cpu,
    trace_event::{ExitReason, Observer, TraceEvent},
};

impl<O: Observer> World<O> {
    /// The vCPU there runs on borrowed time from now on; `notified`: that is written into its pv page, if it has one, and it may
    /// give the time back early.
    pub(crate) fn borrow_begin(&mut self, cpu: Cpu, vcpu: usize, budget_ns: u64, notified: bool) {
        let now_ns = self.now_ns;
        let pv_page = self.vms[self.vcpus[vcpu].vm as usize].pv_page;
        let model = self.host.steering;
        let capped = budget_ns != NEVER_NS;
        let known = &mut self.vcpus[vcpu];
        known.steered.borrowed_since_ns = Some(now_ns);
        known.steered.entered_borrowing = false;
        // A vCPU that runs for the rest of a slice is not notified.
        known.borrowed = pv_page && capped && notified;
        let task = known.task;
        let pcpu = &mut self.cpus[cpu.index()];
        let until_ns = now_ns.saturating_add(budget_ns).min(NEVER_NS - 1);
        pcpu.borrow_until_ns = if model.tick_only {
            until_ns.div_ceil(self.scheduler.tick_period_ns()) * self.scheduler.tick_period_ns()
        } else {
            until_ns
        };
        pcpu.poll_at_ns = if pv_page || !capped || !notified || self.host.ecs.is_some() {
            NEVER_NS
        } else {
            now_ns + model.poll_period_ns
        };
        self.emit(cpu, TraceEvent::BorrowBegin { task });
    }

    /// The borrowed time there ends, whichever task runs next.
    pub(crate) fn borrow_end(&mut self, cpu: Cpu) {
        let pcpu = &mut self.cpus[cpu.index()];
        if pcpu.borrow_until_ns == NEVER_NS {
            return;
        }
        pcpu.borrow_until_ns = NEVER_NS;
        pcpu.poll_at_ns = NEVER_NS;
        if let Some(vcpu) = self.vcpu_on(cpu) {
            let known = &mut self.vcpus[vcpu];
            known.steered.borrowed_since_ns = None;
            known.borrowed = false;
            let task = known.task;
            self.emit(cpu, TraceEvent::BorrowEnd { task });
        }
    }

    /// The time of a loan or grant is over, or it is polled.
    pub(crate) fn borrow_due(&mut self, cpu: Cpu) {
        let pcpu = &self.cpus[cpu.index()];
        let over = pcpu.borrow_until_ns <= self.now_ns;
        let Some(vcpu) = self.vcpu_on(cpu) else {
            self.borrow_end(cpu);
            return;
        };
        self.interrupt_the_guest(cpu, vcpu, self.costs.poll_ns);
        if over {
            self.give_back(cpu);
            return;
        }
        let facts = self.facts(cpu, vcpu, None);
        let policies = self.policies(vcpu);
        let period_ns = self.host.steering.poll_period_ns;
        self.cpus[cpu.index()].poll_at_ns = self.now_ns + period_ns;
        if policies.on_poll(&facts, &mut self.vcpus[vcpu].memory) == Decision::GiveBack {
            self.give_back(cpu);
        }
    }

    /// A borrower without a pv page enters its guest again: it is polled, as in `on_kvm_entry()` of
    /// bpf/scheduler/kvm.bpf.h.
    pub(crate) fn poll_at_entry(&mut self, cpu: Cpu, vcpu: usize) {
        if self.cpus[cpu.index()].poll_at_ns == NEVER_NS {
            return;
        }
        if !std::mem::replace(&mut self.vcpus[vcpu].steered.entered_borrowing, true) {
            return;
        }
        let facts = self.facts(cpu, vcpu, None);
        let policies = self.policies(vcpu);
        if policies.on_poll(&facts, &mut self.vcpus[vcpu].memory) == Decision::GiveBack {
            self.give_back(cpu);
        }
    }

    /// The vCPU there leaves its pCPU: to its lender, or to the next task in order.
    pub(crate) fn give_back(&mut self, cpu: Cpu) {
        let now_ns = self.now_ns;
        if let Some(steer) = self.scheduler.steering() {
            if steer.borrower_on(cpu).is_none() {
                steer.end_slice(now_ns, cpu);
            }
        }
        self.cpus[cpu.index()].resched = true;
        self.kick(cpu, 0);
    }

    /// A guest with a pv page has released its last lock: on borrowed time it gives the pCPU back.
    pub(crate) fn says_give_back(&mut self, cpu: Cpu, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        if known.borrowed && known.critical == 0 && known.inside {
            known.borrowed = false;
            known.statistics.given_back += 1;
            let work_ns = self.costs.hypercall_ns;
            self.exit(cpu, vcpu, ExitReason::Hypercall, work_ns, Then::GiveBack);
        }
    }
}
