// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin record`: what KVM and the scheduler do with every VM of this host, into a folder.

pub(crate) mod args;
mod flight;
mod flight_args;

use std::{
    io,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use unspin_agent::{
    EventMask, Until,
    record::{self, About, Progressed, Stream, Streamed, Wanted, rows},
    shell_status,
};
use unspin_recording::{Ended, facts::ScenarioFacts};
use unspin_report::{COMMIT, Document, Machine, Table};

use crate::{
    commands::record::args::{RecordArguments, Switch},
    terminal::{command, failure::Failure, interrupt, output, progress::Activity},
};

/// Records until its time is over, the command has ended, or Ctrl-C; prints a summary.
pub fn run(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    let mut until = Until::new(interrupt::flag()?, arguments.duration);
    let mut mask = EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::PV_PAGES);
    if arguments.ipi == Switch::On {
        mask = mask.and(EventMask::IPIS);
    }
    if arguments.exits {
        mask = mask.and(EventMask::EXITS);
    }
    if let Some(keep) = arguments.flight.keep {
        return flight::run(arguments, keep, mask, about(None), until);
    }
    let begin = Instant::now();
    let wanted = Wanted {
        keep_events_max: 0,
        forget_ended: true,
    };
    let stream = start(&arguments.folder, mask, None, wanted)?;
    if let Err(failure) = command::start(&arguments.command, arguments.output.json, &mut until) {
        stream.finish(Ended::Failed);
        return Err(failure);
    }
    let activity = Activity::start("recording");
    let ended = record::watch(&stream, &mut until, &mut |far| activity.say(&line(far)))?;
    drop(activity);
    let streamed = stream.finish(ended);
    // A recording whose time is over does not end what it watched.
    let status = until.finish_or_terminate()?;
    summary(arguments, &streamed, begin.elapsed())?;
    let error = streamed.error.or(streamed.summary.err().map(Into::into));
    if let Some(error) = error {
        return Err(Failure::Failed(anyhow::Error::from(error).context(
            "the recording ended early; what was written before can be read",
        )));
    }
    Ok(status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(shell_status(status))
    }))
}

/// Attaches the programs and begins a recording of what they write, as made by this program on this machine.
///
/// # Errors
/// When this host cannot be observed, or nothing can be written to the folder.
pub fn start(
    folder: &Path,
    events: EventMask,
    scenario: Option<ScenarioFacts>,
    wanted: Wanted,
) -> Result<Stream, Failure> {
    Ok(record::start(folder, events, about(scenario), wanted)?)
}

/// What only this program knows of a recording.
fn about(scenario: Option<ScenarioFacts>) -> About {
    About {
        commit: COMMIT.to_owned(),
        machine: Machine::here(output::in_testbed()).to_string(),
        scenario,
    }
}

fn line(far: Progressed) -> String {
    format!(
        "recording: {:.0} events/s, {} lost, {} VMs, {:.1} MB",
        far.events_per_second,
        far.lost,
        far.vms,
        far.bytes as f64 / 1e6
    )
}

/// Adds the recording, its events by kind, and its VMs.
fn tables(document: &mut Document, folder: &Path, streamed: &Streamed, took: Duration) {
    let Ok(summary) = &streamed.summary else {
        return; // the error is told, and nothing is known to stand on the disk
    };
    let manifest = &summary.manifest;
    let recording = rows::recording(folder, summary, took);
    document.table(Table::of("", [recording]));
    document.table(Table::of("Events by kind", rows::kinds(streamed, manifest)));
    document.table(Table::of("VMs", manifest.facts.vms.iter().map(rows::vm)));
    if let Some(blind) = &manifest.facts.ipi.blind {
        document.note(format!("inter-processor interrupts: blind, {blind}"));
    }
    if let Some(error) = &summary.merge_error {
        document.note(format!("segments were not merged: {error}"));
    }
}

/// The summary is standard output's only with `--json` or without a command, whose own output stands there otherwise.
fn summary(
    arguments: &RecordArguments,
    streamed: &Streamed,
    took: Duration,
) -> Result<(), Failure> {
    let mut document = output::document("record");
    tables(&mut document, &arguments.folder, streamed, took);
    if arguments.command.is_empty() || arguments.output.json {
        output::print(&document, arguments.output)?;
    } else {
        document.write_text(&mut io::stderr().lock())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clap::Parser;

    use super::*;
    use crate::commands::{self, Arguments};

    #[test]
    fn a_command_that_cannot_be_started_is_named() {
        let line = ["unspin", "record", "folder", "--", "/nonexistent/command"];
        let commands::Command::Record(arguments) = Arguments::parse_from(line).command else {
            panic!("another command")
        };
        let error = command::start(
            &arguments.command,
            false,
            &mut Until::new(Arc::default(), None),
        );
        let Err(Failure::Failed(error)) = error else {
            panic!("another failure, or none")
        };
        let said = format!("{error:#}");
        assert!(
            said.starts_with("/nonexistent/command: cannot be started: "),
            "{said}"
        );
    }
}
