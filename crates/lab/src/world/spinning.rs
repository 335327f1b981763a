// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the hypervisor handles a pause-loop exit: which vCPU to run instead, and the next window. The rules are those of
//! `policy/`.

use unspin_policy::{
    CandidateRule, CandidateState, Control, SpinBound, Spinner, Vector as SeenVector, WaitExit,
    Walk, Where, YieldFacts, is_receiver, verdict,
};

use super::{World, pcpu::State};
use crate::world::steering::lab_host::SpinCount;
use crate::{
    ids::{Cpu, Task},
    scheduler::YieldTo,
    trace_event::{Observer, TraceEvent, Vector},
};

impl<O: Observer> World<O> {
    /// `kvm_vcpu_on_spin()`.
    pub(super) fn on_spin(&mut self, cpu: Cpu, vcpu: usize) {
        let (vm, number) = (self.vcpus[vcpu].vm as usize, self.vcpus[vcpu].number);
        let (first, count) = (self.vms[vm].first, self.vms[vm].vcpus);
        // Under unspin's scheduler a rule of candidates replaces KVM's.
        let steered = self.scheduler.steering().is_some();
        let policies = Some(self.policies(vcpu)).filter(|_| steered);
        let own_rule = policies.and_then(|policies| policies.candidates());
        let rule = own_rule.unwrap_or(self.host.candidates);
        self.vcpus[vcpu].pending_ipi.spins = true;
        self.vcpus[vcpu].steered.spun += 1;
        let mut spinner = Spinner::new(rule, Some(self.mode(vcpu)));
        let ignores = policies.is_some_and(|policies| policies.ignores_vectors());
        if ignores || (own_rule.is_none() && self.host.ignore_reschedules) {
            spinner = spinner.ignoring_reschedules();
        }
        let mut cost_ns = 0u64;
        let rounds = if rule == CandidateRule::Proposed2026 {
            2
        } else {
            1
        };
        for round in 0..rounds {
            if round == 1 {
                spinner = spinner.second_round();
            }
            let mut walk = Walk::new(rule, number, self.vms[vm].last_boosted, count);
            while let Some(other) = walk.next_vcpu() {
                cost_ns += u64::from(self.costs.candidate_ns);
                let candidate = (first + other) as usize;
                let facts = self.yield_facts(vcpu, candidate);
                let verdict = verdict(&spinner, &facts);
                self.vcpus[candidate].pending_ipi.eligible ^= verdict.toggle;
                self.vcpus[candidate].pending_ipi.passed_by |= u64::from(verdict.mark) << number;
                if verdict.take {
                    cost_ns += u64::from(self.costs.yield_to_ns);
                    let target = self.vcpus[candidate].task;
                    // These marks are not recorded where KVM's own rule is used.
                    let receives = own_rule.is_some() && is_receiver(&spinner, &facts);
                    let awaited_ns = facts.ipi_age_ns.filter(|_| receives);
                    let result = self.yield_to(cpu, vcpu, target, awaited_ns);
                    walk.tried(other, result);
                }
            }
            if let Some(boosted) = walk.boosted() {
                self.vms[vm].last_boosted = boosted;
                break;
            }
        }
        self.vcpus[vcpu].host_left_ns += cost_ns;
    }

    /// The mode of a vCPU's guest, now or at its last exit.
    pub(super) fn mode(&self, vcpu: usize) -> Where {
        let known = &self.vcpus[vcpu];
        if known.user && known.handler.is_none() {
            Where::User
        } else {
            Where::Kernel
        }
    }

    /// The facts about another vCPU that a spinner may use.
    fn yield_facts(&self, spinner: usize, vcpu: usize) -> YieldFacts {
        let known = &self.vcpus[vcpu];
        let pending_ipi = known.pending_ipi;
        let state = match self.tasks[known.task.index()].state {
            State::Running => CandidateState::Running,
            State::Runnable if pending_ipi.woken => CandidateState::Woken,
            State::Runnable => CandidateState::Preempted,
            State::Sleeping => CandidateState::Halted,
        };
        let by = self.vcpus[spinner].number;
        let receiver = pending_ipi.sent_by >> by & 1 == 1;
        YieldFacts {
            pending: Some(!known.pending.is_empty()),
            spins: pending_ipi.spins,
            eligible: pending_ipi.eligible,
            receiver: Some(receiver),
            vector: match pending_ipi.vector {
                Some(Vector::Shootdown) => SeenVector::FunctionCall,
                Some(Vector::Reschedule) => SeenVector::Reschedule,
                Some(Vector::Tick) => SeenVector::Other,
                None => SeenVector::NotKnown,
            },
            passed: pending_ipi.passed_by >> by & 1 == 1,
            ipi_age_ns: receiver.then(|| {
                let age_ns = self.now_ns - pending_ipi.sent_ns;
                age_ns.min(u64::from(u32::MAX - 1)) as u32
            }),
            ..YieldFacts::new(state, Some(self.mode(vcpu)))
        }
    }

    /// Calls `yield_to()` of the scheduler; returns the result of the kernel's function. `awaited_ns`: how long the vCPU has waited for
    /// this very candidate, if known.
    pub(super) fn yield_to(
        &mut self,
        cpu: Cpu,
        vcpu: usize,
        target: Task,
        awaited_ns: Option<u32>,
    ) -> i32 {
        if self.scheduler.steering().is_some() {
            let result = self.steered_yield(cpu, vcpu, target, awaited_ns);
            if result > 0 {
                self.disturb_where_it_ran(cpu, target);
            }
            self.emit(cpu, TraceEvent::YieldTo { target, result });
            let statistics = &mut self.vcpus[vcpu].statistics;
            statistics.yields += u64::from(result > 0);
            statistics.yields_refused += u64::from(result <= 0);
            return result;
        }
        let answer = self.scheduler.yield_to(self.now_ns, cpu, target);
        let result = match answer {
            YieldTo::Yielded => 1,
            YieldTo::Refused => 0,
            YieldTo::Alone => -3, // -ESRCH
        };
        self.emit(cpu, TraceEvent::YieldTo { target, result });
        let statistics = &mut self.vcpus[vcpu].statistics;
        if answer != YieldTo::Yielded {
            statistics.yields_refused += 1;
            return result;
        }
        statistics.yields += 1;
        let place = self.scheduler.cpu_of(target);
        self.reschedule_soon(cpu, Some(cpu));
        if let Some(other) = place.filter(|other| *other != cpu) {
            self.reschedule_soon(other, Some(cpu));
        }
        result
    }

    /// yield_to() also reschedules the target's last pCPU (kernel/sched/syscalls.c, Linux 7.2: `resched_curr(p_rq)`);
    /// unspin's scheduler continues with the task that runs there, but its guest exits.
    fn disturb_where_it_ran(&mut self, here: Cpu, target: Task) {
        let vcpu = self.tasks[target.index()].vcpu;
        let ran_on = vcpu.and_then(|vcpu| self.vcpus[vcpu as usize].steered.ran_on);
        if let Some(cpu) = ran_on.filter(|cpu| *cpu != here) {
            self.kick(cpu, self.costs.ipi_ns.into());
        }
    }

    /// An IPI is sent to a vCPU: records it for strict boost (ruling 32).
    pub(super) fn record_ipi(&mut self, sender: usize, receiver: usize, vector: Vector) {
        if self.cpu_of(self.vcpus[receiver].task).is_none() {
            let by = self.vcpus[sender].number;
            let pending_ipi = &mut self.vcpus[receiver].pending_ipi;
            pending_ipi.sent_by |= 1 << by;
            pending_ipi.vector = Some(vector);
            pending_ipi.sent_ns = self.now_ns;
        }
    }

    /// A vCPU is switched in: the record is cleared, and KVM shrinks its window.
    pub(super) fn arrives(&mut self, vcpu: usize) {
        let rule = self.host.window;
        self.halt_over(vcpu);
        let known = &mut self.vcpus[vcpu];
        known.ends_wait = false;
        known.pending_ipi.woken = false;
        known.pending_ipi.sent_by = 0;
        known.pending_ipi.passed_by = 0;
        let window = known.pauses.hardware.window();
        known.pauses.hardware.set_window(rule.after_switch(window));
    }

    /// Sets the window after a pause-loop exit, and adds the exit to APPLE's epoch.
    pub(super) fn window_after_exit(&mut self, vcpu: usize, window: u32) {
        let rule = self.host.window;
        let vm = self.vcpus[vcpu].vm as usize;
        let counts = SpinBound::Window.counts(WaitExit::PauseLoop, None);
        if rule.control() == Control::Apple && counts {
            self.apple_exit(vm, window, self.host.window_unit_ps);
        }
        let desired = self.vms[vm].apple.window();
        let hardware = &mut self.vcpus[vcpu].pauses.hardware;
        hardware.set_window(rule.after_exit(window, desired));
    }

    /// An exit of a VM's epoch; at the epoch's end the VM's CPU time and handling time in it are computed.
    pub(super) fn apple_exit(&mut self, vm: usize, window: u32, unit_ps: u64) {
        if !self.vms[vm].epoch.add_exit(Some(window)) {
            return;
        }
        let (cpu_ns, handling_ns) = self.vm_times(vm);
        let state = &mut self.vms[vm];
        state.epoch.add_cpu(cpu_ns - state.epoch_begin.0);
        state.epoch.add_handling(handling_ns - state.epoch_begin.1);
        let ppm = state.epoch.inefficiency_ppm(Some(unit_ps));
        state.apple.epoch_over(ppm);
        state.epoch = Default::default();
        state.epochs += 1;
        state.epoch_begin = (cpu_ns, handling_ns);
    }

    /// CPU time of a VM's vCPUs so far, and the part of it in the host for exits that count, ns.
    fn vm_times(&self, vm: usize) -> (u64, u64) {
        let (first, count) = (self.vms[vm].first as usize, self.vms[vm].vcpus as usize);
        let vcpus = &self.vcpus[first..first + count];
        let cpu_ns = |vcpu: &super::vcpu::Vcpu| {
            let task = &self.tasks[vcpu.task.index()];
            let running = task.state == State::Running;
            task.running_ns
                + if running {
                    self.now_ns - task.since_ns
                } else {
                    0
                }
        };
        let notified = self.host.spin_count != SpinCount::Own;
        let handling_ns = |vcpu: &super::vcpu::Vcpu| match notified {
            true => vcpu.statistics.wait_host_ns,
            false => vcpu.statistics.spin_host_ns,
        };
        (
            vcpus.iter().map(cpu_ns).sum(),
            vcpus.iter().map(handling_ns).sum(),
        )
    }
}
