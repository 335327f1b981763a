// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts that policies get: the same as a BPF program's, and of the same age (`bpf/scheduler/guest/vcpus.bpf.h`).

use unspin_policy::{
    Where,
    steering::{Fact, Facts, OrderFacts, UNSPIN_AGE_MAX, UNSPIN_AGE_UNKNOWN, VcpuFacts},
};

use crate::world::{World, pcpu::State};
use crate::{ids::Cpu, trace_event::Observer};

/// Values of modes in facts (`policy/contract.h`).
const USER: u32 = unspin_policy::steering::UNSPIN_FACT_USER;
const KERNEL: u32 = unspin_policy::steering::UNSPIN_FACT_KERNEL;

pub(super) const UNKNOWN: Fact = Fact {
    value: 0,
    age_ns: UNSPIN_AGE_UNKNOWN,
};

impl<O: Observer> World<O> {
    /// Whether an observation of that vCPU was lost: drawn from a generator of its own.
    fn is_lost(&mut self, vcpu: usize, lost_ppm: u32) -> bool {
        self.vcpus[vcpu].random.below(1_000_000) < u64::from(lost_ppm)
    }

    /// A fact that was observed `age_ns` ago, with the model's additional age; sometimes it is lost.
    pub(crate) fn fact(&mut self, vcpu: usize, value: u32, age_ns: u64) -> Fact {
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

    /// The facts about a vCPU that the host has. `near`: the pCPU that needs them.
    fn vcpu_facts(&mut self, vcpu: usize, near: Cpu) -> VcpuFacts {
        let now_ns = self.now_ns;
        let known = &self.vcpus[vcpu];
        let task = &self.tasks[known.task.index()];
        let (state, since_ns) = (task.state, task.since_ns);
        let pv_page = self.vms[known.vm as usize].pv_page;
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
            critical: if pv_page {
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
            borrows: match steered.borrowed_since_ns {
                Some(at_ns) => self.fact(vcpu, 1, now_ns - at_ns),
                None => self.fact(vcpu, 0, 0),
            },
            sections: UNKNOWN,
            awaited: UNKNOWN,
            awaits: self.awaits(vcpu),
            near: match steered.ran_on {
                Some(cpu) => self.fact(vcpu, (cpu == near).into(), off_ns),
                None => UNKNOWN,
            },
        }
    }

    pub(crate) fn facts(&mut self, cpu: Cpu, vcpu: usize, candidate: Option<usize>) -> Facts {
        let nobody = VcpuFacts {
            critical: UNKNOWN,
            mode: UNKNOWN,
            descheduled: UNKNOWN,
            yielded: UNKNOWN,
            spun: UNKNOWN,
            borrows: UNKNOWN,
            near: UNKNOWN,
            sections: UNKNOWN,
            awaited: UNKNOWN,
            awaits: UNKNOWN,
        };
        let now_ns = self.now_ns;
        let self_ = self.vcpu_facts(vcpu, cpu);
        let candidate = candidate.map_or(nobody, |other| self.vcpu_facts(other, cpu));
        let task = self.vcpus[vcpu].task;
        let (slice_ns, left_ns) = match self.scheduler.steering() {
            Some(steer) => (steer.vcpu_slice_ns(task), steer.slice_left_ns(now_ns, cpu)),
            None => (0, 0),
        };
        Facts {
            self_,
            candidate,
            slice_ns: slice_ns.min(u32::MAX.into()) as u32,
            slice_left_ns: left_ns.min(u32::MAX.into()) as u32,
            recent_ns: self.policies(vcpu).recent_ns(),
            threshold_ns: self.policies(vcpu).threshold_ns(),
            order: OrderFacts::UNKNOWN,
        }
    }
}
