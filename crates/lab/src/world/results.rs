// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a run, and why a run cannot continue.

use super::{
    World,
    pcpu::State,
    vcpu::{Base, VcpuStatistics},
};
use crate::{
    ids::{Cpu, Task},
    trace_event::Observer,
};

/// Simulated time without a finished iteration after which a run of iterations is given up: longer than any wait that
/// ends.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Number of events at one time after which time is taken to stand still: 64 for each possible pCPU and vCPU.
pub(super) const AT_ONCE_MAX: u32 = 1 << 22;

/// Rounds of the loop of `World::run_until` between two checks for an interrupt: some milliseconds of work.
pub(super) const INTERRUPT_ROUNDS: u32 = 1 << 12;

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// No event can follow any more, or no iteration was finished for a long time.
    #[error("the model makes no progress at {now_ns} ns: {diagnosis}")]
    Stuck {
        /// The simulated time at which this was found.
        now_ns: u64,
        /// What the first vCPUs wait for.
        diagnosis: String,
    },
    /// Somebody set the flag of [`World::interrupt_by`].
    #[error("interrupted at {now_ns} ns")]
    Interrupted {
        /// The simulated time by then.
        now_ns: u64,
    },
    /// An event lies in the past: a mistake in the lab.
    #[error(
        "an event lies in the past; this is a fault of the lab: please report scenario and seed"
    )]
    InThePast,
}

/// How a task's time was spent, ns. The three sum up to the wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// On a pCPU.
    pub running_ns: u64,
    /// Runnable, waiting for a pCPU.
    pub runnable_ns: u64,
    /// Asleep.
    pub halted_ns: u64,
    /// How often it began to wait for a pCPU.
    pub waits: u64,
    /// The longest of these waits.
    pub longest_wait_ns: u64,
}

/// Checks periodically whether the run makes progress.
pub(super) struct Progress {
    next_ns: u64,
    operations: u64,
}

impl Progress {
    pub fn new<O>(world: &World<O>) -> Progress {
        Progress {
            next_ns: world.now_ns + PATIENCE_NS,
            operations: operations(world),
        }
    }

    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    pub fn look<O: Observer>(&mut self, world: &World<O>) -> Result<(), RunError> {
        let now = operations(world);
        if now == self.operations {
            return Err(world.stuck());
        }
        self.operations = now;
        self.next_ns = world.now_ns + PATIENCE_NS;
        Ok(())
    }
}

fn operations<O>(world: &World<O>) -> u64 {
    let each = world.vcpus.iter();
    each.map(|vcpu| vcpu.statistics.operations).sum()
}

impl<O: Observer> World<O> {
    pub(super) fn anybody_runs(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.current.is_some())
    }

    /// What the first vCPUs that are not done wait for.
    pub(super) fn stuck(&self) -> RunError {
        let waits = |vcpu: &super::vcpu::Vcpu| {
            let place = match self.tasks[vcpu.task.index()].state {
                State::Running => "running",
                State::Runnable => "runnable",
                State::Sleeping => "asleep",
            };
            let what = match (vcpu.base, vcpu.asks) {
                (Base::Done, _) => return None,
                (Base::Halted, _) => "halted, and no interrupt is on its way".to_owned(),
                (Base::Spin(spin), Some((lock, since_ns))) => format!(
                    "waits for lock {lock} since {since_ns} ns (a word that holds {})",
                    self.vms[vcpu.vm as usize].memory.get(spin.watcher.word)
                ),
                (Base::Spin(_), None) => "waits for answers to a shootdown".to_owned(),
                _ => "works".to_owned(),
            };
            Some(format!(
                "VM {} vCPU {} ({place}) {what}",
                vcpu.vm, vcpu.number
            ))
        };
        let first: Vec<String> = self.vcpus.iter().filter_map(waits).take(4).collect();
        RunError::Stuck {
            now_ns: self.now_ns,
            diagnosis: format!(
                "{} vCPUs are not done; {}",
                self.unfinished,
                first.join("; ")
            ),
        }
    }

    /// Accounts for everything up to now.
    pub(super) fn settle(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.account(Cpu(cpu as u32));
            self.plan(Cpu(cpu as u32));
            let pcpu = &mut self.cpus[cpu];
            let elapsed_ns = self.now_ns - pcpu.idle_since_ns;
            match pcpu.current {
                Some(_) => pcpu.busy_ns += elapsed_ns,
                None => pcpu.idle_ns += elapsed_ns,
            }
            pcpu.idle_since_ns = self.now_ns;
        }
        for task in &mut self.tasks {
            // The same state continues: a wait that is not over is not counted twice.
            let state = task.state;
            task.becomes(state, self.now_ns);
        }
    }

    /// How a task's time was spent.
    pub fn times(&self, task: Task) -> TaskTimes {
        let task = &self.tasks[task.index()];
        TaskTimes {
            running_ns: task.running_ns,
            runnable_ns: task.runnable_ns,
            halted_ns: task.sleeping_ns,
            waits: task.waits,
            longest_wait_ns: task.longest_wait_ns,
        }
    }

    /// Busy and idle time of a pCPU, ns.
    pub fn cpu_times(&self, cpu: Cpu) -> (u64, u64) {
        let pcpu = &self.cpus[cpu.index()];
        (pcpu.busy_ns, pcpu.idle_ns)
    }

    /// Of a pCPU's busy time, what interrupts and threads of the host took, ns.
    pub fn cpu_host_ns(&self, cpu: Cpu) -> u64 {
        self.cpus[cpu.index()].host_ns
    }

    /// Every vCPU: its VM, its number there, its task, its statistics.
    pub fn vcpus(&self) -> impl Iterator<Item = (u32, u32, Task, &VcpuStatistics)> {
        let each = self.vcpus.iter();
        each.map(|vcpu| (vcpu.vm, vcpu.number, vcpu.task, &vcpu.statistics))
    }

    /// Number of pCPUs.
    pub fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Number of tasks.
    pub fn tasks(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// The observer of all events.
    pub fn into_observer(self) -> O {
        self.observer
    }
}
