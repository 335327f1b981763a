// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a world to its end, and what each vCPU did: the numbers of all tables of the lab.

use unspin_policy::auto::AutoStep;
use unspin_scenario::{Length, Scenario};

use crate::{
    RunError, TaskTimes, VcpuStatistics, World,
    engine::NEVER_NS,
    ids::{Cpu, Task},
    trace_event::Observer,
};

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Simulated time at the end, ns.
    pub end_ns: u64,
    /// Length of the window over which rates are computed, without the warm-up, ns.
    pub window_ns: u64,
    /// Changes of the state of a vCPU, pCPU, lock or timer.
    pub trace_events: u64,
    /// All vCPUs, by VM and number.
    pub vcpus: Vec<VcpuOutcome>,
    /// Busy and idle time of each pCPU in the whole run, ns.
    pub cpus: Vec<(u64, u64)>,
    /// Of each pCPU's busy time, what interrupts and threads of the host took, ns; its tick, exits and switches are not in it.
    pub host_ns: Vec<u64>,
    /// The epochs of each VM, in order, where policies are chosen by trial.
    pub auto_steps: Vec<AutoStep>,
}

/// What a vCPU did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcpuOutcome {
    /// Its VM.
    pub vm: u32,
    /// Its number there.
    pub vcpu: u32,
    /// Its task.
    pub task: Task,
    /// Its counts at the end of the warm-up.
    pub before: Counts,
    /// Its counts at the end of the run.
    pub after: Counts,
}

/// All counts of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What it did.
    pub statistics: VcpuStatistics,
    /// How its time was spent.
    pub times: TaskTimes,
}

impl VcpuOutcome {
    /// Iterations done in the window.
    pub const fn operations(&self) -> u64 {
        self.after.statistics.operations - self.before.statistics.operations
    }

    /// A count or time in the window: its value at the window's end minus that at its beginning.
    pub fn grown(&self, what: impl Fn(&Counts) -> u64) -> u64 {
        what(&self.after) - what(&self.before)
    }
}

impl Outcome {
    /// Iterations done in the window by the vCPUs of a VM, or of all.
    pub fn operations(&self, vm: Option<u32>) -> u64 {
        let ours = |vcpu: &&VcpuOutcome| vm.is_none_or(|vm| vcpu.vm == vm);
        let ours = self.vcpus.iter().filter(ours);
        ours.map(VcpuOutcome::operations).sum()
    }
}

/// Runs a world, which is at time 0, for the scenario's duration. `at` is called with the simulated time now and then.
///
/// # Errors
/// When the model makes no progress.
pub fn run<O: Observer>(
    world: &mut World<O>,
    scenario: &Scenario,
    mut at: impl FnMut(u64),
) -> Result<Outcome, RunError> {
    const STEPS: u64 = 100;
    let begin = counts(world);
    let before = match scenario.length {
        Length::Iterations(_) => {
            world.run_until(NEVER_NS)?;
            begin
        }
        Length::DurationNs(end_ns) => {
            if scenario.warm_up_ns > 0 {
                world.run_until(scenario.warm_up_ns)?;
            }
            let before = counts(world);
            let window_ns = end_ns - scenario.warm_up_ns;
            for step in 1..=STEPS {
                at(world.now_ns());
                let passed_ns = u128::from(window_ns) * u128::from(step) / u128::from(STEPS);
                // Below window_ns, which has 64 bits.
                world.run_until(scenario.warm_up_ns + passed_ns as u64)?;
            }
            before
        }
    };
    let vcpus = world.vcpus().zip(before).zip(counts(world));
    let vcpus = vcpus.map(|(((vm, vcpu, task, _), before), after)| VcpuOutcome {
        vm,
        vcpu,
        task,
        before,
        after,
    });
    Ok(Outcome {
        end_ns: world.now_ns(),
        window_ns: world.now_ns() - scenario.warm_up_ns,
        trace_events: world.trace_events(),
        vcpus: vcpus.collect(),
        cpus: (0..world.cpus())
            .map(|cpu| world.cpu_times(Cpu(cpu)))
            .collect(),
        host_ns: (0..world.cpus())
            .map(|cpu| world.cpu_host_ns(Cpu(cpu)))
            .collect(),
        auto_steps: world.auto_steps().to_vec(),
    })
}

fn counts<O: Observer>(world: &World<O>) -> Vec<Counts> {
    let each = world.vcpus().map(|(.., task, statistics)| Counts {
        statistics: *statistics,
        times: world.times(task),
    });
    each.collect()
}
