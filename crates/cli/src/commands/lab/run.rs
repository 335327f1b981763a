// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab run`: one run of one scenario.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use unspin_lab::{
    Lab, Outcome, RunError,
    observers::{Counter, Traced},
    recording::RecordedRun,
    run as run_world,
    trace_event::Observer,
};
use unspin_report::COMMIT;
use unspin_scenario::{Length, Scenario, format_duration};

use crate::{
    commands::lab::{args::LabRunArguments, load, tables as lab_tables, tables::Ran},
    terminal::{failure::Failure, output, progress::Activity},
};

/// Runs and prints the tables.
pub fn run(arguments: &LabRunArguments) -> Result<(), Failure> {
    let (scenario, lab) = load::load(&arguments.scenario)?;
    let mut notes = Vec::new();
    let ran = match (&arguments.trace, &arguments.record) {
        (Some(path), _) => traced(path, &scenario, &lab, &mut notes)?,
        (None, Some(folder)) => recorded(folder, &scenario, &lab, &mut notes)?,
        (None, None) => {
            let counter = Counter::new(lab.host().topology.cpus());
            let (outcome, counter, wall) = simulate(&scenario, &lab, counter)?;
            ran(&scenario, outcome, counter, wall)?
        }
    };
    let mut document = output::document("lab run");
    lab_tables::add(&mut document, &scenario, &lab, &ran);
    for note in notes {
        document.note(note);
    }
    Ok(output::print(&document, arguments.output)?)
}

fn ran(
    scenario: &Scenario,
    outcome: Result<Outcome, RunError>,
    counter: Counter,
    wall: Duration,
) -> Result<Ran, Failure> {
    let outcome = outcome.map_err(|error| load::stuck(scenario, &error))?;
    Ok(Ran {
        outcome,
        counter,
        wall,
    })
}

/// When a run ended. One that is stuck leaves its trace or recording, too, which shows why.
fn end_ns(outcome: &Result<Outcome, RunError>) -> u64 {
    match outcome {
        Ok(outcome) => outcome.end_ns,
        Err(RunError::Stuck { now_ns, .. }) => *now_ns,
        Err(RunError::InThePast) => u64::MAX >> 1,
    }
}

fn traced(
    path: &Path,
    scenario: &Scenario,
    lab: &Lab,
    notes: &mut Vec<String>,
) -> Result<Ran, Failure> {
    let name = || format!("writing the trace {}", path.display());
    let traced = Traced::create(path, scenario, lab.host()).with_context(name)?;
    let (outcome, traced, wall) = simulate(scenario, lab, traced)?;
    let (counter, written) = traced.finish(end_ns(&outcome)).with_context(name)?;
    let bytes = written.bytes;
    notes.push(format!(
        "trace: {} ({bytes} bytes); open it with ui.perfetto.dev",
        path.display()
    ));
    ran(scenario, outcome, counter, wall)
}

fn recorded(
    folder: &Path,
    scenario: &Scenario,
    lab: &Lab,
    notes: &mut Vec<String>,
) -> Result<Ran, Failure> {
    let name = || format!("recording into {}", folder.display());
    let recorded = RecordedRun::create(folder, scenario, lab.host(), COMMIT).with_context(name)?;
    let (outcome, recorded, wall) = simulate(scenario, lab, recorded)?;
    let (counter, summary) = recorded.finish(end_ns(&outcome)).with_context(name)?;
    if let Some(summary) = summary {
        notes.push(format!(
            "recording: {} ({} events); unspin outcomes, explain and threshold read it",
            folder.display(),
            summary.manifest.events
        ));
    }
    ran(scenario, outcome, counter, wall)
}

/// One run, with progress on a terminal.
fn simulate<O: Observer>(
    scenario: &Scenario,
    lab: &Lab,
    observer: O,
) -> Result<(Result<Outcome, RunError>, O, Duration), Failure> {
    let mut world = lab
        .world(scenario, observer)
        .map_err(|error| load::refused(&scenario.name, &error))?;
    let activity = Activity::start(&format!("simulating {}", scenario.name));
    let begin = Instant::now();
    let outcome = run_world(&mut world, scenario, |now_ns| {
        if let Length::DurationNs(end_ns) = scenario.length {
            let (now, end) = (format_duration(now_ns), format_duration(end_ns));
            activity.say(&format!("simulating {}: {now} of {end}", scenario.name));
        }
    });
    let wall = begin.elapsed();
    Ok((outcome, world.into_observer(), wall))
}
