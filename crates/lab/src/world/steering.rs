// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls the policies: the functions of `policy/steering/policies.h`, with what `facts` gathers. eCS's extra schedule
//! (`policy/steering/ecs.h`) works with every scheduler.

pub(crate) mod auto;
pub(crate) mod borrowing;
pub(crate) mod facts;
pub(crate) mod gang;
pub(crate) mod lab_host;
use unspin_policy::{
    mechanics::BorrowKind,
    steering::{
        Decision, Fact, Facts, Policies, UNSPIN_AGE_UNKNOWN, UNSPIN_AWAITED_BY_SELF,
        UNSPIN_AWAITED_BY_SOMEBODY, VcpuFacts, answer_may_be_awaited,
    },
};

use super::{World, pcpu::State};
use crate::{
    engine::NEVER_NS,
    ids::{Cpu, Task},
    trace_event::Observer,
};

/// Whether the vCPU's guest publishes that it is in a critical section.
fn says_critical(facts: &Facts) -> bool {
    facts.self_.critical.age_ns != UNSPIN_AGE_UNKNOWN && facts.self_.critical.value != 0
}

impl<O: Observer> World<O> {
    /// The policies that are called for that vCPU.
    #[inline]
    pub(super) fn policies(&self, vcpu: usize) -> Policies {
        self.vms[self.vcpus[vcpu].vm as usize].policies
    }

    /// These are called for that VM's vCPUs from now on; the next slices have their length.
    pub(super) fn set_policies(&mut self, vm: usize, policies: Policies) {
        self.vms[vm].policies = policies;
        let (first, count) = (self.vms[vm].first as usize, self.vms[vm].vcpus as usize);
        let Some(steer) = self.scheduler.steering() else {
            return;
        };
        let slice_ns = |lends| policies.length_of_slice_ns(steer.slice_ns(), lends);
        let (plain_ns, lending_ns) = (slice_ns(false), slice_ns(true));
        for vcpu in &self.vcpus[first..first + count] {
            steer.set_slices(vcpu.task, plain_ns, lending_ns);
        }
    }

    /// KVM proposes a candidate to unspin's scheduler (`ops.yield`); returns the result of `yield_to()`.
    pub(super) fn steered_yield(
        &mut self,
        cpu: Cpu,
        vcpu: usize,
        target: Task,
        awaited_ns: Option<u32>,
    ) -> i32 {
        let candidate = self.tasks[target.index()].vcpu.map(|vcpu| vcpu as usize);
        let mut facts = self.facts(cpu, vcpu, candidate);
        if let Some(other) = candidate {
            facts.candidate.awaited = self.awaited(vcpu, other, awaited_ns, &facts.candidate);
        }
        let now_ns = self.now_ns;
        if let Some(steer) = self.scheduler.steering() {
            facts.order = steer.order(now_ns, cpu, target);
            let task = self.vcpus[vcpu].task;
            if answer_may_be_awaited(&facts.candidate) {
                steer.note_answer(task);
            }
        }
        facts.self_.awaits = self.awaits(vcpu);
        let policies = self.policies(vcpu);
        let decision = policies.on_yield(&facts, &mut self.vcpus[vcpu].memory);
        i32::from(self.act(cpu, vcpu, target, decision))
    }

    /// Whether it waits for answers in its slice or did in its last.
    fn awaits(&mut self, vcpu: usize) -> Fact {
        let task = self.vcpus[vcpu].task;
        let steer = self.scheduler.steering();
        let awaits = steer.map_or(0, |steer| steer.answer_slices(task));
        self.fact(vcpu, awaits, 0)
    }

    /// As of bpf/scheduler/yield: a rule of candidates of ours knows whom it waits for; without one, pending interrupts are seen.
    fn awaited(
        &mut self,
        vcpu: usize,
        other: usize,
        awaited_ns: Option<u32>,
        candidate: &VcpuFacts,
    ) -> Fact {
        if let Some(age_ns) = awaited_ns {
            return self.fact(other, UNSPIN_AWAITED_BY_SELF, age_ns.into());
        }
        let follows = self.policies(vcpu).candidates().is_some();
        let reads = self.policies(vcpu).read_answers(candidate);
        if follows || !reads || !self.vcpus[other].pending.is_awaited() {
            return facts::UNKNOWN;
        }
        self.fact(
            other,
            UNSPIN_AWAITED_BY_SOMEBODY,
            candidate.descheduled.age_ns.into(),
        )
    }

    /// Carries out a decision; returns whether it had an effect.
    fn act(&mut self, cpu: Cpu, vcpu: usize, target: Task, decision: Decision) -> bool {
        if self.scheduler.steering().is_none() {
            return false;
        }
        let budget_ns = match self.borrow_kind(cpu).within_slice(decision) {
            Decision::Direct => NEVER_NS,
            Decision::Lend(budget_ns) => budget_ns.into(),
            Decision::GiveBack => {
                self.give_back(cpu);
                return true;
            }
            Decision::YieldBuddy {
                threshold_ns,
                raise_ns,
                credit_ns,
            } => {
                let steer = self.scheduler.steering();
                if !steer.is_some_and(|steer| {
                    steer.yield_buddy(cpu, target, threshold_ns, raise_ns, credit_ns)
                }) {
                    return false;
                }
                self.vcpus[vcpu].steered.yielded_ns = Some(self.now_ns);
                self.reschedule_soon(cpu, Some(cpu));
                return true;
            }
            Decision::Pass | Decision::Refuse | Decision::Grant(_) | Decision::Extend(_) => {
                return false;
            }
        };
        let steer = self.scheduler.steering();
        if !steer.is_some_and(|steer| steer.lend(cpu, target, budget_ns != NEVER_NS)) {
            return false;
        }
        let now_ns = self.now_ns;
        if let Some(steer) = self
            .scheduler
            .steering()
            .filter(|_| decision.is_lock_loan())
        {
            steer.note_lock(now_ns, self.vcpus[vcpu].task);
            steer.note_lock(now_ns, target);
        }
        self.vcpus[vcpu].steered.yielded_ns = Some(self.now_ns);
        self.cpus[cpu.index()].loan_ns = budget_ns;
        self.reschedule_soon(cpu, Some(cpu));
        true
    }

    /// Whose time the task there runs on. Unlike in BPF, the rest of a slice that was passed on for good is a loan
    /// here.
    fn borrow_kind(&mut self, cpu: Cpu) -> BorrowKind {
        if self.cpus[cpu.index()].borrow_until_ns == NEVER_NS {
            return BorrowKind::Nothing;
        }
        let steer = self.scheduler.steering();
        match steer.and_then(|steer| steer.borrower_on(cpu)) {
            Some(_) => BorrowKind::Loan,
            None => BorrowKind::Grant,
        }
    }

    /// A guest calls for help (Friebel 2008): the host ranks the vCPUs of the VM and runs the one with the highest rank.
    pub(super) fn help(&mut self, cpu: Cpu, vcpu: usize) {
        let vm = self.vcpus[vcpu].vm as usize;
        let (first, count) = (self.vms[vm].first as usize, self.vms[vm].vcpus as usize);
        let policies = self.policies(vcpu);
        let mut best: Option<(u32, usize, Decision)> = None;
        for other in (first..first + count).filter(|other| *other != vcpu) {
            if self.tasks[self.vcpus[other].task.index()].state != State::Runnable {
                continue;
            }
            let facts = self.facts(cpu, vcpu, Some(other));
            let (decision, rank) = policies.on_help(&facts, &mut self.vcpus[vcpu].memory);
            if rank > best.map_or(0, |(rank, ..)| rank) {
                best = Some((rank, other, decision));
            }
        }
        if let Some((_, other, decision)) = best {
            let target = self.vcpus[other].task;
            if self.act(cpu, vcpu, target, decision) {
                self.vcpus[vcpu].statistics.helped += 1;
            }
        }
    }

    /// A guest calls for help and names a vCPU: `kvm_sched_yield()` (arch/x86/kvm/x86.c, Linux 7.2) yields to it if it
    /// is ready, without the conditions of `kvm_vcpu_on_spin()`.
    pub(super) fn help_named(&mut self, cpu: Cpu, vcpu: usize, target: usize) {
        let task = self.vcpus[target].task;
        if target != vcpu && self.tasks[task.index()].state == State::Runnable {
            self.yield_to(cpu, vcpu, task, Some(0));
        }
    }

    /// The scheduler reschedules the pCPU at a tick; returns whether the vCPU there may continue for a while.
    pub(super) fn extend_slice(&mut self, cpu: Cpu) -> bool {
        let Some(vcpu) = self.vcpu_on(cpu) else {
            return false;
        };
        if !self.borrow_kind(cpu).may_be_granted() {
            return false;
        }
        let critical = self.vcpus[vcpu].critical;
        if critical != 0 {
            self.vcpus[vcpu].statistics.boundaries_critical += 1;
        }
        let granted = if self.scheduler.steering().is_some() {
            let facts = self.facts(cpu, vcpu, None);
            let (now_ns, task) = (self.now_ns, self.vcpus[vcpu].task);
            if let Some(steer) = self.scheduler.steering().filter(|_| says_critical(&facts)) {
                steer.note_lock(now_ns, task);
            }
            let policies = self.policies(vcpu);
            match policies.on_slice_end(&facts, &mut self.vcpus[vcpu].memory) {
                Decision::Grant(budget_ns) => Some((budget_ns.into(), true)),
                Decision::Extend(budget_ns) => Some((budget_ns.into(), false)),
                _ => None,
            }
        } else {
            let pv_page = self.vms[self.vcpus[vcpu].vm as usize].pv_page;
            let ecs = self.vcpus[vcpu].ecs.as_mut();
            let budget_ns = ecs.and_then(|ecs| ecs.on_slice_end(pv_page.then_some(critical)));
            // In eCS's paper nothing is given back before the time has passed.
            budget_ns.map(|budget_ns| (budget_ns, self.host.ecs == Some(true)))
        };
        let Some((budget_ns, notified)) = granted else {
            return false;
        };
        if let Some(steer) = self.scheduler.steering() {
            steer.grant(self.now_ns, cpu, budget_ns);
        }
        self.vcpus[vcpu].statistics.grants += 1;
        self.borrow_begin(cpu, vcpu, budget_ns, notified);
        true
    }

    /// A task is switched in: on its own slice, or on another task's.
    pub(super) fn slice_begins(&mut self, cpu: Cpu, vcpu: usize) {
        self.vcpus[vcpu].steered.ran_on = Some(cpu);
        let task = self.vcpus[vcpu].task;
        let budget_ns = std::mem::replace(&mut self.cpus[cpu.index()].loan_ns, NEVER_NS);
        match self
            .scheduler
            .steering()
            .map(|steer| steer.borrower_on(cpu))
        {
            Some(Some(borrower)) if borrower == task => {
                self.vcpus[vcpu].statistics.loans += 1;
                self.borrow_begin(cpu, vcpu, budget_ns, true);
            }
            Some(_) => {
                self.vcpus[vcpu].steered.spun = 0;
                let facts = self.facts(cpu, vcpu, None);
                let policies = self.policies(vcpu);
                policies.on_slice_start(&facts, &mut self.vcpus[vcpu].memory);
                self.call_siblings(cpu, vcpu);
            }
            None => {
                if let Some(ecs) = self.vcpus[vcpu].ecs.as_mut() {
                    ecs.on_slice_start();
                }
            }
        }
    }
}
