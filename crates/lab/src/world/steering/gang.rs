// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU begins a slice and its siblings are called to other pCPUs (`policy/steering/gang.h`), as in bpf/scheduler/yield/gang.bpf.h.

use unspin_policy::steering::Decision;

use crate::world::World;
use crate::{
    ids::{Cpu, Task},
    trace_event::Observer,
};

impl<O: Observer> World<O> {
    /// A slice begins there: each pCPU whose slice may be cut is given one sibling. `call_siblings()`.
    pub(crate) fn call_siblings(&mut self, cpu: Cpu, vcpu: usize) {
        let policies = self.policies(vcpu);
        let now_ns = self.now_ns;
        let steer = self.scheduler.steering();
        let begins = steer.is_some_and(|steer| steer.slice_begins_now(now_ns, cpu));
        if !begins || !policies.calls_siblings() {
            return;
        }
        let vm = self.vcpus[vcpu].vm;
        let known = &self.vms[vm as usize];
        let (first, count) = (known.first as usize, known.vcpus as usize);
        let mut cut = self.find_cut(0, vm);
        for other in (first..first + count).filter(|other| *other != vcpu) {
            let Some(there) = cut else {
                return;
            };
            if self.calls(cpu, vcpu, other, there) {
                cut = self.find_cut(there.0 + 1, vm);
            }
        }
    }

    fn find_cut(&mut self, from: u32, vm: u32) -> Option<Cpu> {
        let (tasks, vcpus) = (&self.tasks, &self.vcpus);
        let vm_of = |task: Task| {
            let vcpu = tasks[task.index()].vcpu?;
            Some(vcpus[vcpu as usize].vm)
        };
        let steer = self.scheduler.steering()?;
        steer.find_cut(self.now_ns, from, vm, vm_of)
    }

    /// Calls a sibling to that pCPU, if the policies decide so. `call_to()`.
    fn calls(&mut self, cpu: Cpu, vcpu: usize, other: usize, there: Cpu) -> bool {
        let now_ns = self.now_ns;
        let task = self.vcpus[other].task;
        let Some(steer) = self.scheduler.steering() else {
            return false;
        };
        if !steer.may_be_called(now_ns, task, there) {
            return false;
        }
        let order = steer.order(now_ns, cpu, task);
        let mut facts = self.facts(cpu, vcpu, Some(other));
        facts.order = order;
        let policies = self.policies(vcpu);
        let decision = policies.on_call(&facts, &mut self.vcpus[vcpu].memory);
        let Decision::YieldBuddy { threshold_ns, .. } = decision else {
            return false;
        };
        if let Some(steer) = self.scheduler.steering() {
            steer.call(now_ns, there, task, threshold_ns);
        }
        self.reschedule_soon(there, None);
        true
    }
}
