// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of each VM of the host, epoch by epoch: reads useful times, asks `policy/auto/controller.h`, writes what it says.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use unspin_policy::auto::{
    AUTO_EPOCH_NS, AUTO_SETTLE_NS, Auto, AutoSet, AutoStep, UsefulTime, auto_seed,
};

use super::{Actuator, UsefulTimeMeter, VcpuThreads};
use crate::{Error, scheduler::SteerError};

/// One VM.
struct Vm {
    auto: Auto,
    /// What it was given; `None`: nothing of ours.
    written: Option<AutoSet>,
    /// Somebody has chosen for it, or nobody has looked yet: nothing is tried, and nothing judged.
    by_hand: bool,
}

/// Where the epoch is.
enum Phase {
    /// Sets have just been changed.
    Settling { until: Instant },
    /// From these sums on.
    Measuring {
        since: Instant,
        sums: BTreeMap<u32, UsefulTime>,
    },
}

/// All VMs of the host. It outlives schedulers: what was learned stays.
pub struct AutoController {
    meter: UsefulTimeMeter,
    /// Those alone; empty: all.
    processes: Vec<u32>,
    vms: BTreeMap<u32, Vm>,
    phase: Phase,
    began: Instant,
    seed: u64,
}

impl AutoController {
    /// Attaches the meter. `processes`: VMs to choose for, all if empty; `seed` decides on orders of trials.
    ///
    /// # Errors
    /// As [`UsefulTimeMeter::attach`].
    pub fn new(processes: Vec<u32>, seed: u64) -> Result<AutoController, Error> {
        AutoController::with(UsefulTimeMeter::attach()?, processes, seed)
    }

    /// The same, where the lengths of slices are what is chosen among: vCPUs are sampled.
    ///
    /// # Errors
    /// As [`UsefulTimeMeter::attach`].
    pub(crate) fn sampling(processes: Vec<u32>, seed: u64) -> Result<AutoController, Error> {
        AutoController::with(UsefulTimeMeter::attach_with(true)?, processes, seed)
    }

    fn with(
        meter: UsefulTimeMeter,
        processes: Vec<u32>,
        seed: u64,
    ) -> Result<AutoController, Error> {
        let now = Instant::now();
        Ok(AutoController {
            meter,
            processes,
            vms: BTreeMap::new(),
            phase: Phase::Settling { until: now },
            began: now,
            seed,
        })
    }

    /// A scheduler without policies has been attached: what was chosen acts in it, and an epoch begins.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub(super) fn resume(&mut self, actuator: &mut impl Actuator) -> Result<(), SteerError> {
        // What a vCPU does in its first milliseconds is not judged: an epoch begins with a part that is left out.
        self.meter.resume()?;
        for vm in self.vms.values_mut() {
            vm.written = None;
        }
        self.begin_epoch(actuator)
    }

    /// Nothing is measured until it is resumed.
    pub(super) fn pause(&mut self) {
        self.meter.pause();
    }

    /// Takes the next step if its time has come: ends an epoch and begins the next. Returns what each VM did.
    ///
    /// # Errors
    /// When the kernel refuses to read or write a map.
    pub(super) fn poll(
        &mut self,
        actuator: &mut impl Actuator,
    ) -> Result<Vec<AutoStep>, SteerError> {
        let now = Instant::now();
        match &self.phase {
            Phase::Settling { until } if now >= *until => {
                self.phase = Phase::Measuring {
                    since: now,
                    sums: self.meter.read()?,
                };
                Ok(Vec::new())
            }
            Phase::Measuring { since, .. }
                if now - *since >= Duration::from_nanos(AUTO_EPOCH_NS - AUTO_SETTLE_NS) =>
            {
                let steps = self.end_epoch(now)?;
                self.begin_epoch(actuator)?;
                Ok(steps)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// When [`AutoController::poll`] has something to do next.
    pub(super) fn next(&self) -> Instant {
        match &self.phase {
            Phase::Settling { until } => *until,
            Phase::Measuring { since, .. } => {
                *since + Duration::from_nanos(AUTO_EPOCH_NS - AUTO_SETTLE_NS)
            }
        }
    }

    fn end_epoch(&mut self, now: Instant) -> Result<Vec<AutoStep>, SteerError> {
        let Phase::Measuring { since, sums } = &self.phase else {
            return Ok(Vec::new());
        };
        let length = now - *since;
        let ends = self.meter.read()?;
        let mut steps = Vec::new();
        for (process, end) in &ends {
            if !self.processes.is_empty() && !self.processes.contains(process) {
                continue;
            }
            let seed = auto_seed(self.seed, *process);
            let vm = self.vms.entry(*process).or_insert_with(|| Vm {
                auto: Auto::new(seed),
                written: None,
                by_hand: true,
            });
            // One that has come in the middle of the epoch is judged from the next one on.
            let Some(begin) = sums.get(process) else {
                continue;
            };
            if vm.by_hand {
                vm.auto = Auto::new(seed);
                continue;
            }
            let grown = match self.meter.samples() {
                true => end.since(begin).by_samples(),
                false => end.since(begin),
            };
            steps.push(vm.auto.step(*process, now - self.began, length, &grown));
        }
        self.vms.retain(|process, _| ends.contains_key(process));
        Ok(steps)
    }

    /// Writes what is new, and lets it settle. All VMs' epochs begin at the same time, so that the sums are read once.
    fn begin_epoch(&mut self, actuator: &mut impl Actuator) -> Result<(), SteerError> {
        let by_hand = actuator.by_hand()?;
        for (process, vm) in &mut self.vms {
            let set = vm.auto.set_now();
            vm.by_hand = by_hand.contains(process);
            if vm.by_hand {
                vm.written = None;
            } else if vm.written != Some(set) && actuator.give(*process, set)? {
                vm.written = Some(set);
            }
        }
        actuator.given()?;
        let until = Instant::now() + Duration::from_nanos(AUTO_SETTLE_NS);
        self.phase = Phase::Settling { until };
        Ok(())
    }

    /// The threads of vCPUs, as they come.
    ///
    /// # Errors
    /// As [`UsefulTimeMeter::threads`].
    pub(crate) fn threads(&self) -> Result<VcpuThreads, Error> {
        self.meter.threads()
    }

    /// What acts upon each VM outside of trials, by process.
    pub fn acting(&self) -> Vec<(u32, AutoSet)> {
        let each = self.vms.iter();
        each.map(|(process, vm)| (*process, vm.auto.acting()))
            .collect()
    }
}
