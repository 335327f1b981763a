// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run came to, and why one cannot go on.

use super::{
    World,
    pcpu::State,
    vcpu::{Base, VcpuStatistics},
};
use crate::{
    ids::{Cpu, Task},
    trace_event::Observer,
};

/// Simulated time without any iteration done after which a run of iterations is given up: longer than any wait that ends.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Events of one nanosecond after which time stands still: 64 for each pCPU and vCPU that there can be.
pub(super) const AT_ONCE_MAX: u32 = 1 << 22;

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Nothing can happen any more, or nothing useful has for long.
    #[error("the model makes no progress at {now_ns} ns: {diagnosis}")]
    Stuck {
        /// When that was seen.
        now_ns: u64,
        /// What every vCPU waits for, the first of them.
        diagnosis: String,
    },
    /// An event lies before the present: a fault of the lab.
    #[error(
        "an event lies in the past; this is a fault of the lab: please report scenario and seed"
    )]
    InThePast,
}

/// Where a task's time went, ns. The three add up to the wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// On a pCPU.
    pub running_ns: u64,
    /// Waiting for one.
    pub runnable_ns: u64,
    /// Asleep.
    pub halted_ns: u64,
    /// Times it began to wait for a pCPU.
    pub waits: u64,
    /// The longest of these waits.
    pub longest_wait_ns: u64,
}

/// Looks now and then whether anything useful happens.
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

    /// Puts down everything up to now.
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
            // The same state goes on: a wait is not over and not counted twice.
            let state = task.state;
            task.becomes(state, self.now_ns);
        }
    }

    /// Where a task's time went.
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

    /// Every vCPU: its VM, its number there, its task, what it did.
    pub fn vcpus(&self) -> impl Iterator<Item = (u32, u32, Task, &VcpuStatistics)> {
        let each = self.vcpus.iter();
        each.map(|vcpu| (vcpu.vm, vcpu.number, vcpu.task, &vcpu.statistics))
    }

    /// How many pCPUs there are.
    pub fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// The observer of all events.
    pub fn into_observer(self) -> O {
        self.observer
    }
}
