// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's VMs on this host's KVM, watched, and the rows of what came of it (`unspin vm run`).

mod files;
mod ground_truth;
pub mod guest_statistics;
mod guests;
mod rows;
mod waits;

use std::path::Path;

use unspin_agent::record::{About, Stream, Wanted, start as start_recording};
use unspin_events::log::Metadata;
use unspin_recording::{Ended, facts::ScenarioFacts};
use unspin_report::COMMIT;
use unspin_scenario::Scenario;
use unspin_vmm::{Phase, RunOptions, RunReport, run_told};

pub use files::{EventFile, write as write_guest_log};
pub use ground_truth::{GroundTruthRow, Table1Row};
pub use guests::{CallRow, PreemptionRow, WakeupRow};
pub use rows::{RunRow, VcpuRow, VmRow};
pub use waits::WaitsRow;

use crate::{
    Error, Session, Work, kvm,
    watch::{self, EVENTS_MAX, Events, Observe, Seen, every_event},
};

/// Everything that one run brought back.
pub struct Run {
    /// What ran.
    pub scenario: Scenario,
    /// What the VMM saw.
    pub report: RunReport,
    /// What BPF saw; `None` when it did not watch.
    pub seen: Option<Seen>,
}

/// Programs that are attached, and where their events go.
pub enum Watch {
    /// Into memory.
    Kept(watch::Watch),
    /// Into a recording.
    Recorded(Box<Stream>),
}

impl Watch {
    /// Attaches as `observe` says; as [`watch::Watch::start`].
    ///
    /// # Errors
    /// When this host does not allow what must be.
    pub fn start(observe: Observe, events: Events) -> Result<Option<Watch>, Error> {
        Ok(watch::Watch::start(observe, events)?.map(Watch::Kept))
    }

    /// Attaches, and records that scenario's run on `machine` into `folder`; with `keep` the events are kept in memory as well.
    /// The guests' own log is never part of a recording: `explain` must not see it.
    ///
    /// # Errors
    /// When this host cannot be observed, or the folder is not empty or cannot be written.
    pub fn record(
        folder: &Path,
        scenario: &Scenario,
        machine: &str,
        keep: bool,
    ) -> Result<Watch, Error> {
        let wanted = Wanted {
            keep_events_max: if keep { EVENTS_MAX } else { 0 },
            forget_ended: false,
        };
        let about = About {
            commit: COMMIT.to_owned(),
            machine: machine.to_owned(),
            scenario: Some(ScenarioFacts {
                name: scenario.name.clone(),
                sha256: scenario.hash(),
                seed: scenario.seed,
            }),
        };
        let stream = start_recording(folder, every_event(), about, wanted)?;
        Ok(Watch::Recorded(Box::new(stream)))
    }

    /// Detaches, and brings back what was seen. `ended` says how the run did.
    ///
    /// # Errors
    /// When the kernel does not tell, or the recording could not be written.
    pub fn finish(self, ended: Ended) -> Result<Seen, Error> {
        match self {
            Watch::Kept(watch) => Ok(watch.finish()?),
            Watch::Recorded(stream) => {
                let streamed = stream.finish(ended);
                if let Some(error) = streamed.error {
                    return Err(Error::Failed(
                        anyhow::Error::from(error).context("the run was not recorded"),
                    ));
                }
                streamed.summary.map_err(anyhow::Error::from)?;
                Ok(Seen::of(
                    &streamed.observer,
                    streamed.kept,
                    streamed.not_kept,
                )?)
            }
        }
    }
}

/// Runs the scenario under the programs of `watch`.
///
/// # Errors
/// VMs that cannot be run, a recording that could not be written, an interrupt.
pub fn execute(
    scenario: Scenario,
    watch: Option<Watch>,
    session: &Session<'_>,
) -> Result<Run, Error> {
    let progress = session.progress;
    progress.begin("creating VMs", Work::Unknown);
    let ran = told(scenario, watch, session);
    progress.end();
    ran
}

fn told(scenario: Scenario, watch: Option<Watch>, session: &Session<'_>) -> Result<Run, Error> {
    let pages = kvm::pv_pages_of_running(&scenario)?;
    let options = RunOptions {
        interrupt: session.interrupt.clone(),
        pv_pages: pages.clone(),
        ..RunOptions::default()
    };
    let report = run_told(&scenario, &options, &|phase| {
        session.progress.say(match phase {
            Phase::Created => "starting vCPUs",
            Phase::Started => "warming up",
            Phase::WindowBegins => "running",
            Phase::WindowEnds => "stopping",
            _ => "reading results",
        });
    });
    kvm::say_missed_pv_pages(pages.as_ref());
    let ended = match report {
        Ok(_) => Ended::Finished,
        Err(_) => Ended::Interrupted,
    };
    let seen = watch.map(|watch| watch.finish(ended)).transpose();
    Ok(Run {
        report: report?,
        seen: seen?,
        scenario,
    })
}

impl Run {
    /// What an event log of this run says about itself; nothing where nobody watched.
    pub fn metadata(&self, machine: &str) -> Option<Metadata> {
        let seen = self.seen.as_ref()?;
        Some(Metadata {
            commit: COMMIT.to_owned(),
            scenario_hash: self.scenario.hash(),
            seed: self.scenario.seed,
            machine: machine.to_owned(),
            lost_events: seen.health.lost_events + seen.dropped_events,
        })
    }
}
