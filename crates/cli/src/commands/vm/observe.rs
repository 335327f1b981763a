// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching a run with BPF programs: when that is possible, and what it brings back.

use std::{path::Path, time::Duration};

use unspin_agent::{EventMask, Health, LoadedObserver, ObserveOptions, Observer, Recorder};
use unspin_events::{Event, VcpuCounters};
use unspin_recording::{Ended, facts::ScenarioFacts};

use crate::{
    commands::{
        record::{
            run as record,
            stream::{Stream, Wanted},
        },
        vm::args::Observe,
    },
    terminal::failure::Failure,
};

/// How often the ring is emptied, and how many events are kept at most (64 bytes each).
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
const EVENTS_MAX: usize = 16 << 20;
/// Room for events that are not read yet: beside VMs that fill the host their reader gets a share of a CPU, and what they do
/// while the programs are attached, one after another, may be more than what is looked at (635,000 events of two VMs of four
/// vCPUs in the testbed, of which 16 MiB held half).
const RING_BYTES: u32 = 64 << 20;

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

/// Programs that are attached, and where their events go.
pub enum Watch {
    /// Into memory.
    Kept(Recorder),
    /// Into a recording.
    Recorded(Box<Stream>),
}

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
    pub fn start(observe: Observe, events: Events) -> Result<Option<Watch>, Failure> {
        Watch::ready(observe, events)?.map_or(Ok(None), Ready::start)
    }

    /// Loads what [`Watch::start`] attaches, and `None` where it would give none.
    pub fn ready(observe: Observe, events: Events) -> Result<Option<Ready>, Failure> {
        if observe == Observe::Off {
            if events == Events::Required {
                let message = "--events needs BPF programs, and --observe off forbids them";
                return Err(Failure::Usage(message.into()));
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

    /// Attaches, and records into `folder`; with `keep` the events are kept in memory as well.
    ///
    /// # Errors
    /// When this host cannot be observed, or the folder is not empty or cannot be written.
    pub fn record(folder: &Path, scenario: ScenarioFacts, keep: bool) -> Result<Watch, Failure> {
        let wanted = Wanted {
            keep_events_max: if keep { EVENTS_MAX } else { 0 },
            forget_ended: false,
        };
        let stream = record::start(folder, every_event(), Some(scenario), wanted)?;
        Ok(Watch::Recorded(Box::new(stream)))
    }

    /// Detaches, and brings back what was seen. `ended` says how the run did.
    ///
    /// # Errors
    /// When the kernel does not tell, or the recording could not be written.
    pub fn finish(self, ended: Ended) -> Result<Seen, Failure> {
        let (observer, events, dropped_events) = match self {
            Watch::Kept(recorder) => {
                let recorded = recorder.finish().map_err(anyhow::Error::from)?;
                (recorded.observer, recorded.events, recorded.dropped)
            }
            Watch::Recorded(stream) => {
                let streamed = stream.finish(ended);
                if let Some(error) = streamed.error {
                    return Err(Failure::Failed(error.context("the run was not recorded")));
                }
                streamed.summary.map_err(anyhow::Error::from)?;
                (streamed.observer, streamed.kept, streamed.not_kept)
            }
        };
        Ok(Seen {
            counters: observer.counters().map_err(anyhow::Error::from)?,
            health: observer.health().map_err(anyhow::Error::from)?,
            events,
            dropped_events,
        })
    }
}

impl Ready {
    /// Attaches them, or says why not, as [`Watch::start`].
    pub fn start(self) -> Result<Option<Watch>, Failure> {
        let Some(observer) = if_allowed(self.observer.attach(), self.observe, self.events)? else {
            return Ok(None);
        };
        let recorder = Recorder::start(observer, DRAIN_INTERVAL, EVENTS_MAX)?;
        Ok(Some(Watch::Kept(recorder)))
    }
}

/// What this host gave; `None` when it did not and need not, with a line on standard error.
fn if_allowed<T>(
    given: Result<T, unspin_agent::Error>,
    observe: Observe,
    events: Events,
) -> Result<Option<T>, Failure> {
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
        Err(error) => Err(Failure::Failed(
            anyhow::Error::from(error).context("KVM cannot be observed on this host"),
        )),
    }
}

/// All kinds but single exits and entries.
fn every_event() -> EventMask {
    EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::IPIS)
        .and(EventMask::PV_PAGES)
}

impl Seen {
    /// The counters of a thread.
    pub fn of_thread(&self, thread: u32) -> Option<&VcpuCounters> {
        self.counters
            .iter()
            .find(|counters| counters.thread == thread)
    }
}
