// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far VMs are in step: whether all pCPUs run vCPUs of one VM at a time, as under gang scheduling, more often than
//! by chance.

use unspin_scenario::Scenario;

use crate::{
    ids::{Cpu, Task},
    trace_event::{Observer, TraceEvent},
};

/// All of it, parts per million.
const ALL_PPM: i64 = 1_000_000;

/// Which VM's vCPU each pCPU runs, and for how long that was the same VM on all.
#[derive(Clone, Debug)]
pub struct Together {
    /// By task, those of vCPUs: its VM.
    vm_of: Vec<u32>,
    vms: u32,
    on: Vec<Option<u32>>,
    since_ns: u64,
    /// Time in which every pCPU ran some vCPU.
    pub all_ns: u64,
    /// Of it, the time in which all these were of one VM.
    pub one_vm_ns: u64,
}

impl Together {
    /// For a run of that scenario on so many pCPUs.
    pub fn new(scenario: &Scenario, cpus: u32) -> Together {
        let groups = scenario.vms.iter();
        let vcpus = groups.flat_map(|vm| (0..vm.count).map(|_| vm.vcpus));
        let mut vms = 0;
        let mut vm_of = Vec::new();
        for vcpus in vcpus {
            vm_of.extend((0..vcpus).map(|_| vms));
            vms += 1;
        }
        Together {
            vm_of,
            vms,
            on: vec![None; cpus as usize],
            since_ns: 0,
            all_ns: 0,
            one_vm_ns: 0,
        }
    }

    /// The share of `one_vm_ns` in `all_ns`, less the share expected of independent pCPUs, as a part of the rest (Cohen's kappa),
    /// parts per million: 0 for independent pCPUs, 1,000,000 for gangs, below 0 for VMs that avoid one another. `None` with one
    /// VM or one pCPU, or when never all were busy.
    pub fn in_step_ppm(&self) -> Option<i64> {
        if self.vms < 2 || self.on.len() < 2 || self.all_ns == 0 {
            return None;
        }
        let parts = i128::from(ALL_PPM);
        let share = i128::from(self.one_vm_ns) * parts / i128::from(self.all_ns);
        // VMs to the power of all pCPUs but one; above ALL_PPM it does not matter.
        let others = (1..self.on.len()).try_fold(1i128, |product, _| {
            let product = product * i128::from(self.vms);
            (product <= parts).then_some(product)
        });
        let independent = others.map_or(0, |others| parts / others);
        i64::try_from((share - independent) * parts / (parts - independent)).ok()
    }

    fn changes(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>) {
        let elapsed_ns = now_ns - std::mem::replace(&mut self.since_ns, now_ns);
        if elapsed_ns != 0 && self.on.iter().all(Option::is_some) {
            self.all_ns += elapsed_ns;
            if self.on.iter().all(|vm| *vm == self.on[0]) {
                self.one_vm_ns += elapsed_ns;
            }
        }
        // A thread of the host is of no VM.
        self.on[cpu.index()] = task.and_then(|task| self.vm_of.get(task.index()).copied());
    }
}

impl Observer for &mut Together {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, _: Option<Task>, what: TraceEvent) {
        match what {
            TraceEvent::SwitchIn { task } => self.changes(now_ns, cpu, Some(task)),
            TraceEvent::SwitchOut { .. } => self.changes(now_ns, cpu, None),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two VMs of two vCPUs on two pCPUs; each entry: how long which vCPUs run.
    fn seen(parts: &[(u64, [u32; 2])]) -> Together {
        let text =
            "duration = \"1s\"\n[[vm]]\ncount = 2\nvcpus = 2\nlock = \"ticket\"\nhold = \"1us\"\n";
        let scenario = Scenario::parse(text, "s.toml").expect("a scenario");
        let mut together = Together::new(&scenario, 2);
        let mut now_ns = 0;
        for (length_ns, tasks) in parts.iter().chain([&(0, [0, 0])]) {
            for (cpu, task) in tasks.iter().enumerate() {
                let (cpu, task) = (Cpu(cpu as u32), Task(*task));
                (&mut together).on_event(now_ns, cpu, None, TraceEvent::SwitchIn { task });
            }
            now_ns += length_ns;
        }
        together
    }

    #[test]
    fn gangs_are_in_step_and_chance_is_not() {
        let gang = seen(&[(10, [0, 1]), (10, [2, 3])]);
        assert_eq!(gang.in_step_ppm(), Some(1_000_000));
        let chance = seen(&[(10, [0, 1]), (10, [0, 3]), (10, [2, 3]), (10, [2, 1])]);
        assert_eq!((chance.one_vm_ns, chance.all_ns), (20, 40));
        assert_eq!(chance.in_step_ppm(), Some(0));
        let never = seen(&[(10, [0, 2]), (10, [3, 1])]);
        assert_eq!(never.in_step_ppm(), Some(-1_000_000));
    }

    #[test]
    fn threads_of_the_host_do_not_count() {
        let some = seen(&[(10, [0, 1]), (70, [0, 4]), (10, [2, 3])]);
        assert_eq!(some.all_ns, 20);
        assert_eq!(some.in_step_ppm(), Some(1_000_000));
        assert_eq!(seen(&[(10, [4, 5])]).in_step_ppm(), None);
    }
}
