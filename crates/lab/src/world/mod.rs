// SPDX-License-Identifier: MIT OR Apache-2.0
//! The world: pCPUs, tasks, vCPUs and their guests, and the loop that advances time.
//!
//! Order: events are taken by time, and at one time by slot: pCPUs by number, then the timers of vCPUs by number, then
//! what else the host does (noise.rs). On one pCPU at one time, what the task has finished comes first, then interrupts that arrive, then the tick. The
//! effects of an event on other pCPUs take place at once, in order of their numbers or of arrival at a lock, as
//! documented there.

mod access;
mod build;
mod cpu;
mod exits;
mod guest;
mod guest_tasks;
mod interrupts;
mod noise;
mod pcpu;
mod results;
mod samples;
mod spin;
mod spinning;
mod steering;
mod vcpu;

pub use build::BuildError;
pub use results::{RunError, TaskTimes};
pub use steering::lab_host::{LabHost, Paravirtual, SpinCount, SteeringModel};
pub use vcpu::VcpuStatistics;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use unspin_policy::{Apple, Epoch, auto::AutoStep, steering::Policies};

use crate::{
    costs::Costs,
    engine::{NEVER_NS, WinnerTree},
    guest::{Memory, raw},
    ids::{Cpu, Task},
    scheduler::HostScheduler,
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use noise::Noise;
use pcpu::Pcpu;
use pcpu::TaskState;
use steering::auto::Auto;
use vcpu::Vcpu;

/// A VM.
struct VmState {
    memory: Memory,
    /// Its vCPUs in the world: index of the first, and number.
    first: u32,
    vcpus: u32,
    /// Number of its first lock among all locks of the world.
    first_lock: u32,
    locks: u32,
    /// See `load_changes_every_ms` of a scenario; 0: never.
    load_changes_every_ns: u64,
    pause_every_spins: u32,
    pause_exits: bool,
    /// Whether its vCPUs publish which locks they wait for and hold (`abi/guest/pv_page.h`).
    pv_page: bool,
    help_after_spins: u32,
    tick_period_ns: u64,
    /// `kvm->last_boosted_vcpu`.
    last_boosted: u32,
    /// Which policies are called for its vCPUs.
    policies: Policies,
    /// When one of its vCPUs was seen spinning last.
    spun_ns: Option<u64>,
    apple: Apple,
    epoch: Epoch,
    /// Number of epochs that have ended.
    epochs: u64,
    /// CPU time and handling time of the VM when the current epoch began, ns.
    epoch_begin: (u64, u64),
    /// Data that its tasks point to.
    _distributions: Box<[raw::unspin_distribution; 3]>,
}

/// A simulated host with its VMs.
pub struct World<O> {
    now_ns: u64,
    tree: WinnerTree,
    topology: Topology,
    costs: Costs,
    scheduler: Box<dyn HostScheduler>,
    cpus: Vec<Pcpu>,
    tasks: Vec<TaskState>,
    vcpus: Vec<Vcpu>,
    vms: Vec<VmState>,
    observer: O,
    /// Number of changes of state so far.
    trace_events: u64,
    /// Number of vCPUs whose iterations are not done.
    unfinished: u32,
    host: LabHost,
    /// What the host does besides running vCPUs, if anything.
    noise: Option<Box<Noise>>,
    /// Chooses policies by trial, if it is to.
    auto: Option<Box<Auto>>,
    /// Set from anywhere: the run ends.
    interrupt: Arc<AtomicBool>,
    /// The scenario's seed; each entity's generator starts from it and a number of its own.
    seed: u64,
}

impl<O: Observer> World<O> {
    /// Simulated time since the start, ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Number of changes of the state of a vCPU, pCPU, lock or timer so far.
    pub fn trace_events(&self) -> u64 {
        self.trace_events
    }

    #[inline]
    fn emit(&mut self, cpu: Cpu, what: TraceEvent) {
        self.trace_events += 1;
        let task = self.cpus[cpu.index()].current;
        self.observer.on_event(self.now_ns, cpu, task, what);
    }

    /// The epochs of all VMs that `auto` chooses for, as they ended.
    pub fn auto_steps(&self) -> &[AutoStep] {
        self.auto.as_ref().map_or(&[], |auto| auto.steps())
    }

    /// The vCPU that runs on that pCPU.
    #[inline]
    fn vcpu_on(&self, cpu: Cpu) -> Option<usize> {
        let task = self.cpus[cpu.index()].current?;
        self.tasks[task.index()].vcpu.map(|vcpu| vcpu as usize)
    }

    /// The pCPU that a task is on now.
    #[inline]
    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.tasks[task.index()].on
    }

    /// From now on a run ends with [`RunError::Interrupted`] soon after `interrupt` is set.
    pub fn interrupt_by(&mut self, interrupt: &Arc<AtomicBool>) {
        self.interrupt = Arc::clone(interrupt);
    }

    /// Advances time to `end_ns`, or until every vCPU has done its iterations.
    ///
    /// # Errors
    /// When no event can follow any more, no iteration is finished for too long, or the run is interrupted.
    pub fn run_until(&mut self, end_ns: u64) -> Result<(), RunError> {
        let mut watch = results::Progress::new(self);
        let mut at_once = 0u32;
        // In the first round, too: a run consists of many calls.
        let mut rounds = results::INTERRUPT_ROUNDS - 1;
        while self.unfinished != 0 {
            rounds = rounds.wrapping_add(1) % results::INTERRUPT_ROUNDS;
            if rounds == 0 && self.interrupt.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted {
                    now_ns: self.now_ns,
                });
            }
            let (time_ns, slot) = self.tree.next();
            if self.choose_by(time_ns.min(end_ns)) {
                continue;
            }
            if time_ns > end_ns {
                if time_ns == NEVER_NS && !self.anybody_runs() {
                    return Err(self.stuck());
                }
                break;
            }
            debug_assert!(time_ns >= self.now_ns, "an event in the past");
            if time_ns < self.now_ns {
                return Err(RunError::InThePast);
            }
            at_once = match time_ns == self.now_ns {
                true => at_once + 1,
                false => 0,
            };
            if at_once == results::AT_ONCE_MAX {
                return Err(self.stuck());
            }
            self.now_ns = time_ns;
            let (cpus, timers) = (self.cpus.len() as u32, self.vcpus.len() as u32);
            if slot < cpus {
                self.cpu_event(Cpu(slot));
            } else if slot < cpus + timers {
                self.timer_event((slot - cpus) as usize);
            } else {
                self.noise_event();
            }
            if watch.is_due(self.now_ns) {
                watch.look(self)?;
            }
        }
        if self.unfinished != 0 && end_ns != NEVER_NS {
            self.now_ns = end_ns;
        }
        self.settle();
        Ok(())
    }
}
