// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of one scenario in the lab, as `unspin lab run` prints it: what it leaves in files, and its [`rows`].

mod rows;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use unspin_lab::{
    Lab, Outcome, RunError,
    observers::{Counter, Traced},
    recording::RecordedRun,
    run as run_world,
    trace_event::Observer,
};
use unspin_report::COMMIT;
use unspin_scenario::{Length, Scenario, format_duration};

pub use rows::{CpuRow, EventRow, RunRow, VcpuRow, VmRow};

use crate::{Error, Session, Work};

/// What a run leaves beside its figures.
#[derive(Clone, Copy, Debug)]
pub enum Keep<'a> {
    /// Nothing.
    Nothing,
    /// Its timeline in this file, for ui.perfetto.dev.
    Trace(&'a Path),
    /// In this folder what a real host's observer would have recorded.
    Recording(&'a Path),
}

/// What it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    Nothing,
    /// A trace of so many bytes.
    Trace(u64),
    /// A recording of so many events.
    Recording(u64),
}

/// A run and what watched it.
pub struct Ran {
    /// What came of it.
    pub outcome: Outcome,
    /// Its events.
    pub counter: Counter,
    /// How long it took here.
    pub wall: Duration,
    /// What it left.
    pub kept: Kept,
}

/// Runs the scenario in its lab. A run that is stuck or interrupted leaves its trace or recording, too, which shows why.
///
/// # Errors
/// A world that cannot be, a model without progress, a file that cannot be written, an interrupt.
pub fn run(
    scenario: &Scenario,
    lab: &Lab,
    keep: Keep<'_>,
    session: &Session,
) -> Result<Ran, Error> {
    let (outcome, counter, wall, kept) = match keep {
        Keep::Nothing => {
            let counter = Counter::new(lab.host().topology.cpus());
            let (outcome, counter, wall) = simulate(scenario, lab, counter, session)?;
            (outcome, counter, wall, Kept::Nothing)
        }
        Keep::Trace(path) => {
            let name = || format!("writing the trace {}", path.display());
            let traced = Traced::create(path, scenario, lab.host()).with_context(name)?;
            let (outcome, traced, wall) = simulate(scenario, lab, traced, session)?;
            let (counter, written) = traced.finish(end_ns(&outcome)).with_context(name)?;
            (outcome, counter, wall, Kept::Trace(written.bytes))
        }
        Keep::Recording(folder) => {
            let name = || format!("recording into {}", folder.display());
            let recorded =
                RecordedRun::create(folder, scenario, lab.host(), COMMIT).with_context(name)?;
            let (outcome, recorded, wall) = simulate(scenario, lab, recorded, session)?;
            let (counter, summary) = recorded.finish(end_ns(&outcome)).with_context(name)?;
            let events = summary.map(|summary| summary.manifest.events);
            let kept = events.map_or(Kept::Nothing, Kept::Recording);
            (outcome, counter, wall, kept)
        }
    };
    let (name, seed) = (&scenario.name, scenario.seed);
    Ok(Ran {
        // The seed repeats it.
        outcome: outcome.map_err(|error| match error {
            RunError::Interrupted { .. } => Error::Interrupted,
            error => anyhow!("{name}, seed {seed}: {error}").into(),
        })?,
        counter,
        wall,
        kept,
    })
}

/// When a run ended, of one that is stuck, too.
fn end_ns(outcome: &Result<Outcome, RunError>) -> u64 {
    match outcome {
        Ok(outcome) => outcome.end_ns,
        Err(RunError::Stuck { now_ns, .. } | RunError::Interrupted { now_ns }) => *now_ns,
        Err(RunError::InThePast) => u64::MAX >> 1,
    }
}

/// One run, its simulated time told as it passes.
fn simulate<O: Observer>(
    scenario: &Scenario,
    lab: &Lab,
    observer: O,
    session: &Session,
) -> Result<(Result<Outcome, RunError>, O, Duration), Error> {
    let name = &scenario.name;
    let mut world = lab.world(scenario, observer).map_err(|error| Error::Lab {
        of: name.clone(),
        error,
    })?;
    world.interrupt_by(&session.interrupt);
    let progress = session.progress;
    progress.begin(&format!("simulating {name}"), Work::Unknown);
    let begin = Instant::now();
    let outcome = run_world(&mut world, scenario, |now_ns| {
        if let Length::DurationNs(end_ns) = scenario.length {
            let (now, end) = (format_duration(now_ns), format_duration(end_ns));
            progress.say(&format!("simulating {name}: {now} of {end}"));
        }
    });
    let wall = begin.elapsed();
    progress.end();
    Ok((outcome, world.into_observer(), wall))
}
