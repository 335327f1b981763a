// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching VMs with BPF programs: when that is possible, and what it brings back.

use std::{collections::BTreeMap, time::Duration};

use unspin_agent::{
    EventMask, Health, IpiVisibility, LoadedObserver, ObserveOptions, Observer, Recorder,
    ipi_visibility,
};
use unspin_analysis::{
    Sight,
    outcomes::{Assumed, Counted, Workload, analyse_events, lost_somewhere},
};
use unspin_events::{
    Event, VcpuCounters,
    log::{EventLog, Metadata},
};
use unspin_vmm::{RunReport, Shares};

use crate::Error;

/// How often the ring is emptied.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// How many events are kept at most (64 bytes each).
pub const EVENTS_MAX: usize = 16 << 20;
/// Room for events that are not read yet: beside VMs that fill the host their reader gets a share of a CPU, and what they do
/// while the programs are attached, one after another, may be more than what is looked at (635,000 events of two VMs of four
/// vCPUs in the testbed, of which 16 MiB held half).
const RING_BYTES: u32 = 64 << 20;

/// Whether to load the BPF programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// When this host allows it; otherwise say why not and go on.
    Auto,
    /// Or fail.
    On,
    /// Never.
    Off,
}

/// Whether single events are wanted beside the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// Counting alone is cheap.
    None,
    /// If they can be had.
    Wanted,
    /// Or fail.
    Required,
}

/// Programs that are loaded and see nothing yet.
pub struct Ready {
    observer: LoadedObserver,
    observe: Observe,
    events: Events,
}

/// Programs that are attached, their events kept in memory.
pub struct Watch(Recorder);

/// What they saw.
pub struct Seen {
    /// By VM and vCPU.
    pub counters: Vec<VcpuCounters>,
    /// In the order written; empty unless events were asked for.
    pub events: Vec<Event>,
    /// What was lost.
    pub health: Health,
    /// Events that could not be kept.
    pub dropped_events: u64,
}

impl Watch {
    /// Attaches as `observe` says. `None` when it says off, or auto and this host does not allow it (and `events` are
    /// not required): then a line on standard error says why.
    ///
    /// # Errors
    /// When this host does not allow what must be.
    pub fn start(observe: Observe, events: Events) -> Result<Option<Watch>, Error> {
        Watch::ready(observe, events)?.map_or(Ok(None), Ready::start)
    }

    /// Loads what [`Watch::start`] attaches, and `None` where it would give none.
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn ready(observe: Observe, events: Events) -> Result<Option<Ready>, Error> {
        if observe == Observe::Off {
            if events == Events::Required {
                let message = "--events needs BPF programs, and --observe off forbids them";
                return Err(Error::Usage(message.into()));
            }
            return Ok(None);
        }
        let counts = ObserveOptions {
            events: EventMask::NONE,
            ..ObserveOptions::default()
        };
        let options = match events {
            Events::None => counts,
            Events::Wanted | Events::Required => ObserveOptions {
                events: every_event(),
                ring_bytes: RING_BYTES,
                ..counts
            },
        };
        let loaded = if_allowed(Observer::load(&options), observe, events)?;
        Ok(loaded.map(|observer| Ready {
            observer,
            observe,
            events,
        }))
    }

    /// Detaches, and brings back what was seen.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn finish(self) -> Result<Seen, Error> {
        let recorded = self.0.finish()?;
        Seen::of(&recorded.observer, recorded.events, recorded.dropped)
    }
}

impl Ready {
    /// Attaches them, or says why not, as [`Watch::start`].
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn start(self) -> Result<Option<Watch>, Error> {
        let Some(observer) = if_allowed(self.observer.attach(), self.observe, self.events)? else {
            return Ok(None);
        };
        let recorder = Recorder::start(observer, DRAIN_INTERVAL, EVENTS_MAX)?;
        Ok(Some(Watch(recorder)))
    }
}

/// The programs that count alone, for so many threads; `None` when told not to, or when this host does not allow it and need not
/// (a line on standard error says why).
///
/// # Errors
/// When this host does not allow what must be.
pub fn attach_counting(observe: Observe, threads_max: u32) -> Result<Option<Observer>, Error> {
    if observe == Observe::Off {
        return Ok(None);
    }
    let options = ObserveOptions {
        events: EventMask::NONE,
        threads_max,
        ..ObserveOptions::default()
    };
    if_allowed(Observer::attach(&options), observe, Events::None)
}

/// What this host gave; `None` when it did not and need not, with a line on standard error.
fn if_allowed<T>(
    given: Result<T, unspin_agent::Error>,
    observe: Observe,
    events: Events,
) -> Result<Option<T>, Error> {
    match given {
        Ok(given) => Ok(Some(given)),
        Err(error) if observe == Observe::Auto && events != Events::Required => {
            // The kernel's verifier can say hundreds of lines; --observe on shows them.
            let text = error.to_string();
            eprintln!(
                "unspin: not observed: {}",
                text.lines().next().unwrap_or_default()
            );
            Ok(None)
        }
        Err(error) => Err(Error::Failed(
            anyhow::Error::from(error).context("KVM cannot be observed on this host"),
        )),
    }
}

/// All kinds but single exits and entries.
pub fn every_event() -> EventMask {
    EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::IPIS)
        .and(EventMask::PV_PAGES)
}

impl Seen {
    /// What an observer that has detached from its events counted, and those events.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn of(observer: &Observer, events: Vec<Event>, dropped_events: u64) -> Result<Seen, Error> {
        Ok(Seen {
            counters: observer.counters()?,
            health: observer.health()?,
            events,
            dropped_events,
        })
    }

    /// The counters of a thread.
    pub fn of_thread(&self, thread: u32) -> Option<&VcpuCounters> {
        self.counters
            .iter()
            .find(|counters| counters.thread == thread)
    }

    /// What the pause-loop exits of this run were for, of which `report` is what the VMM saw. What its guests tell of themselves
    /// goes into their share of spinning and nowhere else. `name` and `machine` are what tables say.
    pub fn outcomes(
        &self,
        report: &RunReport,
        name: String,
        machine: String,
        assumed: &Assumed,
    ) -> Workload {
        let log = EventLog::new(Metadata::default(), self.events.clone());
        let module = report.pause_loop.as_ref().map(|found| found.module);
        let observed = ObserveOptions {
            events: EventMask::IPIS,
            ..ObserveOptions::default()
        };
        let sight = Sight {
            ipi_blind: ipi_visibility(&observed) != IpiVisibility::Visible,
            window_unit: assumed.window_unit(module),
            linux_vectors: false,
        };
        let tsc_hz = report.clock.tsc_hz();
        let mut guest_spin_percent = BTreeMap::new();
        for vm in &report.vms {
            // Events number VMs in order of appearance, reports in the scenario's.
            let thread = vm.vcpus.first().map(|vcpu| vcpu.thread_id);
            let counters = thread.and_then(|thread| self.of_thread(thread));
            let percent = Shares::of_vm(vm, tsc_hz).spin_percent();
            if let (Some(counters), Some(percent)) = (counters, percent) {
                guest_spin_percent.insert(counters.vm, percent);
            }
        }
        let mut counted = BTreeMap::<u32, Counted>::new();
        for vcpu in &self.counters {
            let vm = counted.entry(vcpu.vm).or_default();
            vm.exits += vcpu.ple_exits;
            vm.boosted += vcpu.yield_to_boosted;
        }
        let lost = self.health.lost_events + self.dropped_events;
        let mut complaints: Vec<String> = lost_somewhere(lost).into_iter().collect();
        let missed = self.health.recursion_misses() + self.health.unobserved_exits;
        if missed > 0 {
            complaints.push(format!(
                "programs missed {missed} of their runs: figures may be off by as many events"
            ));
        }
        Workload {
            name,
            machine,
            exits: analyse_events(log.events(), sight, lost),
            names: BTreeMap::new(),
            counted,
            guest_spin_percent,
            complaints,
        }
    }
}
