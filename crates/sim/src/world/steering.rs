// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where policies are asked: with the facts that a BPF program has, as old as it has them, and by the very functions of
//! `policy/steering.h`. eCS's extra schedule (`policy/ecs.h`) works with every scheduler.

use unspin_policy::Where;
use unspin_steering::{
    Decision, Fact, Facts, OrderFacts, UNSPIN_AGE_MAX, UNSPIN_AGE_UNKNOWN, VcpuFacts,
};

use super::{World, task::State, vcpu::Then};
use crate::{
    engine::NEVER_NS,
    happening::{ExitReason, Happening, Observer},
    ids::{Cpu, Task},
};

/// What a policy is told of modes (`policy/contract.h`).
const USER: u32 = unspin_steering::UNSPIN_FACT_USER;
const KERNEL: u32 = unspin_steering::UNSPIN_FACT_KERNEL;

const UNKNOWN: Fact = Fact {
    value: 0,
    age_ns: UNSPIN_AGE_UNKNOWN,
};

impl<O: Observer> World<O> {
    /// Whether something about that vCPU was not seen: drawn from a generator of its own.
    fn is_lost(&mut self, vcpu: usize, lost_ppm: u32) -> bool {
        self.vcpus[vcpu].random.below(1_000_000) < u64::from(lost_ppm)
    }

    /// Something that was seen so long ago, and is told later still; now and then it was lost.
    fn fact(&mut self, vcpu: usize, value: u32, age_ns: u64) -> Fact {
        let model = self.host.steering;
        if model.lost_ppm != 0 && self.is_lost(vcpu, model.lost_ppm) {
            return UNKNOWN;
        }
        let age_ns = (age_ns + u64::from(model.facts_age_ns)).min(UNSPIN_AGE_MAX.into());
        Fact {
            value,
            age_ns: age_ns as u32,
        }
    }

    /// What the host knows of a vCPU. `near`: the pCPU that asks.
    fn vcpu_facts(&mut self, vcpu: usize, near: Cpu) -> VcpuFacts {
        let now_ns = self.now_ns;
        let known = &self.vcpus[vcpu];
        let task = &self.tasks[known.task.index()];
        let (state, since_ns) = (task.state, task.since_ns);
        let hints = self.vms[known.vm as usize].hints;
        let (critical, steered) = (known.critical, known.steered);
        let mode = match self.mode(vcpu) {
            Where::User => USER,
            Where::Kernel => KERNEL,
        };
        let off_ns = if state == State::Running {
            0
        } else {
            now_ns - since_ns
        };
        VcpuFacts {
            critical: if hints {
                self.fact(vcpu, critical, off_ns)
            } else {
                UNKNOWN
            },
            mode: self.fact(vcpu, mode, now_ns - steered.exit_ns),
            descheduled: match state {
                State::Runnable => self.fact(vcpu, 1, off_ns),
                State::Running => self.fact(vcpu, 0, 0),
                State::Sleeping => UNKNOWN,
            },
            yielded: steered
                .yielded_ns
                .map_or(UNKNOWN, |at_ns| self.fact(vcpu, 1, now_ns - at_ns)),
            spun: self.fact(vcpu, steered.spun, 0),
            owes: match steered.owes_since_ns {
                Some(at_ns) => self.fact(vcpu, 1, now_ns - at_ns),
                None => self.fact(vcpu, 0, 0),
            },
            sections: UNKNOWN,
            near: match steered.ran_on {
                Some(cpu) => self.fact(vcpu, (cpu == near).into(), off_ns),
                None => UNKNOWN,
            },
        }
    }

    pub(super) fn facts(&mut self, cpu: Cpu, vcpu: usize, candidate: Option<usize>) -> Facts {
        let nobody = VcpuFacts {
            critical: UNKNOWN,
            mode: UNKNOWN,
            descheduled: UNKNOWN,
            yielded: UNKNOWN,
            spun: UNKNOWN,
            owes: UNKNOWN,
            near: UNKNOWN,
            sections: UNKNOWN,
        };
        let now_ns = self.now_ns;
        let self_ = self.vcpu_facts(vcpu, cpu);
        let candidate = candidate.map_or(nobody, |other| self.vcpu_facts(other, cpu));
        let (slice_ns, left_ns) = match self.scheduler.steering() {
            Some(steer) => (steer.slice_ns(), steer.slice_left_ns(now_ns, cpu)),
            None => (0, 0),
        };
        Facts {
            self_,
            candidate,
            slice_ns: slice_ns.min(u32::MAX.into()) as u32,
            slice_left_ns: left_ns.min(u32::MAX.into()) as u32,
            recent_ns: self.host.steering.policies.recent_ns(),
            threshold_ns: self.host.steering.policies.threshold_ns(),
            order: OrderFacts::UNKNOWN,
        }
    }

    /// KVM proposes a candidate to our scheduler (`ops.yield`); what `yield_to()` returns.
    pub(super) fn steered_yield(&mut self, cpu: Cpu, vcpu: usize, target: Task) -> i32 {
        let candidate = self.tasks[target.index()].vcpu.map(|vcpu| vcpu as usize);
        let mut facts = self.facts(cpu, vcpu, candidate);
        let now_ns = self.now_ns;
        if let Some(steer) = self.scheduler.steering() {
            facts.order = steer.order(now_ns, cpu, target);
        }
        let policies = self.host.steering.policies;
        let decision = policies.on_yield(&facts, &mut self.vcpus[vcpu].memory);
        i32::from(self.act(cpu, vcpu, target, decision))
    }

    /// Does what was decided; whether anything came of it.
    fn act(&mut self, cpu: Cpu, vcpu: usize, target: Task, decision: Decision) -> bool {
        let budget_ns = match decision {
            Decision::Direct => NEVER_NS,
            Decision::Lend(budget_ns) => budget_ns.into(),
            Decision::GiveBack => {
                self.give_back(cpu);
                return true;
            }
            Decision::Hint {
                threshold_ns,
                raise_ns,
                credit_ns,
            } => {
                let steer = self.scheduler.steering();
                if !steer
                    .is_some_and(|steer| steer.hint(cpu, target, threshold_ns, raise_ns, credit_ns))
                {
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
        self.vcpus[vcpu].steered.yielded_ns = Some(self.now_ns);
        self.cpus[cpu.index()].loan_ns = budget_ns;
        self.reschedule_soon(cpu, Some(cpu));
        true
    }

    /// A guest asks for help (Friebel 2008): the host ranks the vCPUs of the VM and lets the best run.
    pub(super) fn help(&mut self, cpu: Cpu, vcpu: usize) {
        let vm = self.vcpus[vcpu].vm as usize;
        let (first, count) = (self.vms[vm].first as usize, self.vms[vm].vcpus as usize);
        let policies = self.host.steering.policies;
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

    /// A guest asks for help and says whom to run: `kvm_sched_yield()` (arch/x86/kvm/x86.c, Linux 7.2) yields to it if it is
    /// ready, whatever `kvm_vcpu_on_spin()` would think of it.
    pub(super) fn help_named(&mut self, cpu: Cpu, vcpu: usize, target: usize) {
        let task = self.vcpus[target].task;
        if target != vcpu && self.tasks[task.index()].state == State::Runnable {
            self.yield_to(cpu, vcpu, task);
        }
    }

    /// The scheduler wants the pCPU at a tick: whether the vCPU there may go on for a while.
    pub(super) fn goes_on(&mut self, cpu: Cpu) -> bool {
        let Some(vcpu) = self.vcpu_on(cpu) else {
            return false;
        };
        if self.cpus[cpu.index()].borrow_until_ns != NEVER_NS {
            return false;
        }
        let critical = self.vcpus[vcpu].critical;
        if critical != 0 {
            self.vcpus[vcpu].statistics.boundaries_critical += 1;
        }
        let granted = if self.scheduler.steering().is_some() {
            let facts = self.facts(cpu, vcpu, None);
            let policies = self.host.steering.policies;
            match policies.on_slice_end(&facts, &mut self.vcpus[vcpu].memory) {
                Decision::Grant(budget_ns) => Some((budget_ns.into(), true)),
                Decision::Extend(budget_ns) => Some((budget_ns.into(), false)),
                _ => None,
            }
        } else {
            let hints = self.vms[self.vcpus[vcpu].vm as usize].hints;
            let ecs = self.vcpus[vcpu].ecs.as_mut();
            let budget_ns = ecs.and_then(|ecs| ecs.on_slice_end(hints.then_some(critical)));
            // eCS's paper gives nothing back before the time is up.
            budget_ns.map(|budget_ns| (budget_ns, self.host.ecs == Some(true)))
        };
        let Some((budget_ns, told)) = granted else {
            return false;
        };
        if let Some(steer) = self.scheduler.steering() {
            steer.grant(self.now_ns, cpu, budget_ns);
        }
        self.vcpus[vcpu].statistics.grants += 1;
        self.borrow_begin(cpu, vcpu, budget_ns, told);
        true
    }

    /// From now on the vCPU there runs on time that is not its own; `told`: its guest hears of it, if it gives hints, and may
    /// give it back before.
    pub(super) fn borrow_begin(&mut self, cpu: Cpu, vcpu: usize, budget_ns: u64, told: bool) {
        let now_ns = self.now_ns;
        let hints = self.vms[self.vcpus[vcpu].vm as usize].hints;
        let model = self.host.steering;
        let capped = budget_ns != NEVER_NS;
        let known = &mut self.vcpus[vcpu];
        known.steered.owes_since_ns = Some(now_ns);
        known.steered.entered_owing = false;
        // Who is let run for the rest of a slice is not told.
        known.borrowed = hints && capped && told;
        let task = known.task;
        let pcpu = &mut self.cpus[cpu.index()];
        let until_ns = now_ns.saturating_add(budget_ns).min(NEVER_NS - 1);
        pcpu.borrow_until_ns = if model.tick_only {
            until_ns.div_ceil(self.scheduler.tick_period_ns()) * self.scheduler.tick_period_ns()
        } else {
            until_ns
        };
        pcpu.look_at_ns = if hints || !capped || !told || self.host.ecs.is_some() {
            NEVER_NS
        } else {
            now_ns + model.look_period_ns
        };
        self.tell(cpu, Happening::BorrowBegin { task });
    }

    /// It does not any more, whoever runs next.
    pub(super) fn borrow_end(&mut self, cpu: Cpu) {
        let pcpu = &mut self.cpus[cpu.index()];
        if pcpu.borrow_until_ns == NEVER_NS {
            return;
        }
        pcpu.borrow_until_ns = NEVER_NS;
        pcpu.look_at_ns = NEVER_NS;
        if let Some(vcpu) = self.vcpu_on(cpu) {
            let known = &mut self.vcpus[vcpu];
            known.steered.owes_since_ns = None;
            known.borrowed = false;
            let task = known.task;
            self.tell(cpu, Happening::BorrowEnd { task });
        }
    }

    /// The time of a loan or grant is up, or it is looked at.
    pub(super) fn borrow_due(&mut self, cpu: Cpu) {
        let pcpu = &self.cpus[cpu.index()];
        let over = pcpu.borrow_until_ns <= self.now_ns;
        let Some(vcpu) = self.vcpu_on(cpu) else {
            self.borrow_end(cpu);
            return;
        };
        self.interrupt_the_guest(cpu, vcpu, self.costs.look_ns);
        if over {
            self.give_back(cpu);
            return;
        }
        let facts = self.facts(cpu, vcpu, None);
        let policies = self.host.steering.policies;
        let period_ns = self.host.steering.look_period_ns;
        self.cpus[cpu.index()].look_at_ns = self.now_ns + period_ns;
        if policies.on_look(&facts, &mut self.vcpus[vcpu].memory) == Decision::GiveBack {
            self.give_back(cpu);
        }
    }

    /// A borrower that gives no hints is entered once more: it is looked at, as in `on_kvm_entry()` of bpf/steer_kvm.bpf.h.
    pub(super) fn look_at_entry(&mut self, cpu: Cpu, vcpu: usize) {
        if self.cpus[cpu.index()].look_at_ns == NEVER_NS {
            return;
        }
        if !std::mem::replace(&mut self.vcpus[vcpu].steered.entered_owing, true) {
            return;
        }
        let facts = self.facts(cpu, vcpu, None);
        let policies = self.host.steering.policies;
        if policies.on_look(&facts, &mut self.vcpus[vcpu].memory) == Decision::GiveBack {
            self.give_back(cpu);
        }
    }

    /// The pCPU goes back to whom it is owed, or to whose turn it is.
    pub(super) fn give_back(&mut self, cpu: Cpu) {
        let now_ns = self.now_ns;
        if let Some(steer) = self.scheduler.steering() {
            if steer.borrower_on(cpu).is_none() {
                steer.end_turn(now_ns, cpu);
            }
        }
        self.cpus[cpu.index()].resched = true;
        self.kick(cpu, 0);
    }

    /// A guest with a hint page has let go of its last lock: on borrowed time it says so.
    pub(super) fn says_give_back(&mut self, cpu: Cpu, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        if known.borrowed && known.critical == 0 && known.inside {
            known.borrowed = false;
            known.statistics.given_back += 1;
            let work_ns = self.costs.hypercall_ns;
            self.exit(cpu, vcpu, ExitReason::Hypercall, work_ns, Then::GiveBack);
        }
    }

    /// A task gets the pCPU: on its own turn, or on another's.
    pub(super) fn turn_begins(&mut self, cpu: Cpu, vcpu: usize) {
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
                let policies = self.host.steering.policies;
                policies.on_turn(&facts, &mut self.vcpus[vcpu].memory);
                self.call_siblings(cpu, vcpu);
            }
            None => {
                if let Some(ecs) = self.vcpus[vcpu].ecs.as_mut() {
                    ecs.on_turn();
                }
            }
        }
    }
}
