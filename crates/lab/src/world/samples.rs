// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of vCPUs that may be spinning (`policy/classify/spin_samples.h`), as `bpf/scheduler/yield/samples.bpf.h` takes them: on
//! AMD, under unspin's scheduler. A VM's places are known for 10 s after a pause-loop exit: its guest waits in one loop here.
//!
//! Difference from BPF: where no other task waits, a sample is put off by its interval, and not to the next tick.

use unspin_policy::{SPIN_PLACE_NS, Vendor};

use super::{
    World,
    vcpu::{Base, Then},
};
use crate::{
    engine::NEVER_NS,
    ids::Cpu,
    trace_event::{ExitReason, Observer},
};

impl<O: Observer> World<O> {
    /// Whether vCPUs are sampled where there is reason to.
    fn samples_spinners(&mut self, vcpu: usize) -> bool {
        self.policies(vcpu).samples_spinners()
            && self.host.vendor == Vendor::Amd
            && self.scheduler.steering().is_some()
    }

    /// A pause-loop exit shows where the VM's guest waits.
    pub(super) fn learn_place(&mut self, vcpu: usize) {
        let vm = self.vcpus[vcpu].vm as usize;
        self.vms[vm].spun_ns = Some(self.now_ns);
    }

    /// Whether the vCPU is in its waiting loop, and that is known.
    fn waits_at_place(&self, vcpu: usize) -> bool {
        let known = &self.vcpus[vcpu];
        let spun_ns = self.vms[known.vm as usize].spun_ns;
        let place_known = spun_ns.is_some_and(|at_ns| self.now_ns - at_ns < SPIN_PLACE_NS);
        place_known && known.handler.is_none() && matches!(known.base, Base::Spin(_))
    }

    /// There is reason to sample the vCPU that runs there from now on, unless it is sampled already.
    pub(super) fn begin_samples(&mut self, cpu: Cpu, vcpu: usize, waited: bool) {
        if !self.samples_spinners(vcpu) || self.cpus[cpu.index()].sample_ns != NEVER_NS {
            return;
        }
        self.vcpus[vcpu].samples.begin(waited);
        self.plan_sample(cpu, vcpu);
    }

    /// It has got that pCPU.
    pub(super) fn renew_samples(&mut self, cpu: Cpu, vcpu: usize) {
        let task = self.vcpus[vcpu].task;
        let waited = self.vcpus[vcpu].waited;
        let steer = self.scheduler.steering();
        let borrows = steer.is_some_and(|steer| steer.borrower_on(cpu) == Some(task));
        if waited || borrows {
            self.begin_samples(cpu, vcpu, waited);
        }
    }

    /// It leaves that pCPU.
    pub(super) fn samples_end(&mut self, cpu: Cpu, vcpu: usize, runnable: bool) {
        self.cpus[cpu.index()].sample_ns = NEVER_NS;
        let waited = runnable && self.waits_at_place(vcpu);
        self.vcpus[vcpu].waited = waited && self.samples_spinners(vcpu);
    }

    fn plan_sample(&mut self, cpu: Cpu, vcpu: usize) {
        let in_ns = self.vcpus[vcpu].samples.interval_ns();
        let pcpu = &mut self.cpus[cpu.index()];
        pcpu.sample_ns = in_ns.map_or(NEVER_NS, |in_ns| self.now_ns + in_ns);
        let next_ns = pcpu.next_ns();
        self.tree.set(cpu.0, next_ns);
    }

    /// The timer fires: one that spins is handled as in a pause-loop exit.
    pub(super) fn take_sample(&mut self, cpu: Cpu) {
        let Some(vcpu) = self.vcpu_on(cpu) else {
            self.cpus[cpu.index()].sample_ns = NEVER_NS;
            return;
        };
        if self.scheduler.runnable(cpu) > 1 {
            let waits = self.vcpus[vcpu].inside && self.waits_at_place(vcpu);
            if self.vcpus[vcpu].samples.sampled(waits) {
                let work_ns = self.costs.on_spin_ns;
                self.exit(cpu, vcpu, ExitReason::Interrupt, work_ns, Then::OnSpin);
            } else {
                self.interrupt_the_guest(cpu, vcpu, 0);
            }
        }
        self.plan_sample(cpu, vcpu);
    }
}
