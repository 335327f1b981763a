// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm run`: a scenario's VMs on this host's KVM, watched, and what came of it.

use std::{path::Path, sync::Arc};

use unspin_events::log::Metadata;
use unspin_experiment::{
    guest_statistics, kvm,
    watch::{Events, Seen},
};
use unspin_recording::{Ended, facts::ScenarioFacts};
use unspin_report::{COMMIT, Document, Machine};
use unspin_scenario::Scenario;
use unspin_vmm::{Phase, RunOptions};

use crate::{
    commands::vm::{
        Run, args::VmRunArguments, event_file::EventFile, ground_truth as ground_truth_tables,
        guest_log_file, guests as guest_tables, observe::Watch, tables as vm_tables,
    },
    terminal::{failure::Failure, interrupt, options::Observe, output, progress::Activity, replay},
};

/// Runs the scenario and prints its tables.
pub fn run(arguments: &VmRunArguments) -> Result<(), Failure> {
    let scenario = arguments.scenario.load()?;
    let ground_truth = scenario.vms.iter().any(|vm| vm.log_records > 0);
    // Events are needed to write them, and to judge the guests' own log by them.
    let events = match (&arguments.events, ground_truth) {
        (Some(_), _) => Events::Required,
        (None, true) => Events::Wanted,
        (None, false) => Events::None,
    };
    let file = arguments
        .events
        .as_deref()
        .map(EventFile::create)
        .transpose()?;
    let watch = match &arguments.record {
        Some(folder) => Some(record(arguments, folder, &scenario, events)?),
        None => Watch::start(arguments.observe.into(), events)?,
    };
    let run = execute(scenario, watch)?;
    if let Some(folder) = &arguments.record {
        guest_statistics::write(folder, &run.report)?;
    }
    if let (Some(file), Some(seen)) = (file, &run.seen) {
        file.finish(metadata(&run.scenario, seen), &seen.events)?;
    }
    if let Some(path) = &arguments.guest_log {
        guest_log_file::write(path, &run)?;
    }
    let mut document = output::document("vm run");
    vm_tables::add(&mut document, &run);
    guest_tables::add(&mut document, &run);
    if ground_truth {
        ground_truth_tables::add(&mut document, &run)?;
    }
    notes(&mut document, arguments, &run);
    output::print(&document, arguments.output)?;
    Ok(())
}

/// Runs the scenario under the programs of `watch`.
pub fn execute(scenario: Scenario, watch: Option<Watch>) -> Result<Run, Failure> {
    let activity = Arc::new(Activity::start("creating VMs"));
    let shown = Arc::clone(&activity);
    let pages = kvm::pv_pages_of_running(&scenario)?;
    let options = RunOptions {
        interrupt: interrupt::flag()?,
        pv_pages: pages.clone(),
        on_phase: Some(Box::new(move |phase| {
            shown.say(match phase {
                Phase::Created => "starting vCPUs",
                Phase::Started => "warming up",
                Phase::WindowBegins => "running",
                Phase::WindowEnds => "stopping",
                _ => "reading results",
            });
        })),
        ..RunOptions::default()
    };
    let report = unspin_vmm::run(&scenario, &options);
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

/// Watches into a recording. The guests' own log is never part of one: `explain` must not see it.
fn record(
    arguments: &VmRunArguments,
    folder: &Path,
    scenario: &Scenario,
    events: Events,
) -> Result<Watch, Failure> {
    if arguments.observe == Observe::Off {
        let message = "--record needs BPF programs, and --observe off forbids them";
        return Err(Failure::Usage(message.into()));
    }
    let facts = ScenarioFacts {
        name: scenario.name.clone(),
        sha256: scenario.hash(),
        seed: scenario.seed,
    };
    Watch::record(folder, facts, events != Events::None)
}

/// What the event log says about itself.
fn metadata(scenario: &Scenario, seen: &Seen) -> Metadata {
    Metadata {
        commit: COMMIT.to_owned(),
        scenario_hash: scenario.hash(),
        seed: scenario.seed,
        machine: Machine::here(output::in_testbed()).to_string(),
        lost_events: seen.health.lost_events + seen.dropped_events,
    }
}

/// Watching is part of what is repeated: it changes the times.
fn observe_flag(observe: Observe) -> Vec<String> {
    let word = match observe {
        Observe::Auto => return Vec::new(),
        Observe::On => "on",
        Observe::Off => "off",
    };
    vec![format!("--observe {word}")]
}

/// Seed, hash and the command that repeats the run.
fn notes(document: &mut Document, arguments: &VmRunArguments, run: &Run) {
    document.note(format!(
        "\nscenario {}, seed {}, sha256 {}",
        run.scenario.name,
        run.scenario.seed,
        run.scenario.hash()
    ));
    document.note(format!(
        "repeat it byte for byte: {}",
        replay::command(
            "vm run",
            &arguments.scenario,
            &observe_flag(arguments.observe)
        )
    ));
}
