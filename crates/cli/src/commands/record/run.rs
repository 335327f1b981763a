// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin record`: what KVM and the scheduler do with every VM of this host, into a folder.

use std::{
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use unspin_agent::{EventMask, ObserveOptions, Observer, host_facts};
use unspin_recording::{Ended, Options, Recording, facts::ScenarioFacts};
use unspin_report::{COMMIT, Machine};

use crate::{
    commands::record::{
        args::{RecordArguments, Switch},
        child::{self as record_child, Running},
        stream::{Progress, Stream, Streamed, Wanted},
        tables as record_tables,
    },
    terminal::{failure::Failure, interrupt, output, progress::Activity},
};

/// How often the end is looked for, and the progress line drawn anew.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const SAY_INTERVAL: Duration = Duration::from_secs(1);

/// Records until its time is over, the command has ended, or Ctrl-C; prints a summary.
pub fn run(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    let interrupted = interrupt::flag()?;
    let mut mask = EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::PV_PAGES);
    if arguments.ipi == Switch::On {
        mask = mask.and(EventMask::IPIS);
    }
    if arguments.exits {
        mask = mask.and(EventMask::EXITS);
    }
    let begin = Instant::now();
    let wanted = Wanted {
        keep_events_max: 0,
        forget_ended: true,
    };
    let stream = start(&arguments.folder, mask, None, wanted)?;
    let mut running = match Running::start(&arguments.command, arguments.output.json) {
        Ok(running) => running,
        Err(failure) => {
            stream.finish(Ended::Failed);
            return Err(failure);
        }
    };
    let (ended, status) = watch(arguments, &stream, running.as_mut(), &interrupted)?;
    let streamed = stream.finish(ended);
    // A recording whose time is over does not end what it watched.
    let status = match (status, running) {
        (None, Some(mut running)) => Some(wait(&mut running, &interrupted)?),
        (status, _) => status,
    };
    summary(arguments, &streamed, begin.elapsed())?;
    let error = streamed.error.or(streamed.summary.err().map(Into::into));
    if let Some(error) = error {
        return Err(Failure::Failed(error.context(
            "the recording ended early; what was written before can be read",
        )));
    }
    Ok(status.map_or(ExitCode::SUCCESS, record_child::exit_code))
}

/// Attaches the programs and begins a recording of what they write.
///
/// # Errors
/// When this host cannot be observed, or nothing can be written to the folder.
pub fn start(
    folder: &Path,
    events: EventMask,
    scenario: Option<ScenarioFacts>,
    wanted: Wanted,
) -> Result<Stream, Failure> {
    // A limit on the size of files is an error to be told, not a signal to die from.
    // SAFETY: a signal number and a constant.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let options = ObserveOptions {
        events,
        ..ObserveOptions::default()
    };
    let mut facts = host_facts(&options);
    facts.commit = COMMIT.to_owned();
    facts.machine = Machine::here(output::in_testbed()).to_string();
    facts.scenario = scenario;
    // Disclosures before anything is attached.
    Recording::may_begin(folder).map_err(anyhow::Error::from)?;
    let observer = Observer::attach(&options)
        .map_err(anyhow::Error::from)
        .context("KVM cannot be observed on this host")?;
    let recording =
        Recording::create(folder, facts, Options::default()).map_err(anyhow::Error::from)?;
    Ok(Stream::start(observer, recording, wanted)?)
}

/// Until the end: how it came, and the command's status if it was that.
fn watch(
    arguments: &RecordArguments,
    stream: &Stream,
    mut running: Option<&mut Running>,
    interrupted: &AtomicBool,
) -> Result<(Ended, Option<std::process::ExitStatus>), Failure> {
    let activity = Activity::start("recording");
    let begin = Instant::now();
    let mut said = begin;
    let mut events_then = 0;
    loop {
        if let Some(running) = running.as_deref_mut() {
            if let Some(status) = running.ended()? {
                return Ok((Ended::Finished, Some(status)));
            }
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok((Ended::Interrupted, None));
        }
        if arguments
            .duration
            .is_some_and(|time| begin.elapsed() >= time)
        {
            return Ok((Ended::Finished, None));
        }
        if stream.progress().failed.load(Ordering::Relaxed) {
            return Ok((Ended::Failed, None));
        }
        if said.elapsed() >= SAY_INTERVAL {
            let seconds = said.elapsed().as_secs_f64();
            said = Instant::now();
            activity.say(&line(stream.progress(), &mut events_then, seconds));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

fn line(progress: &Progress, events_then: &mut u64, seconds: f64) -> String {
    let events = progress.events.load(Ordering::Relaxed);
    let rate = (events - *events_then) as f64 / seconds;
    *events_then = events;
    format!(
        "recording: {rate:.0} events/s, {} lost, {} VMs, {:.1} MB",
        progress.lost.load(Ordering::Relaxed),
        progress.vms.load(Ordering::Relaxed),
        progress.bytes.load(Ordering::Relaxed) as f64 / 1e6
    )
}

fn wait(
    running: &mut Running,
    interrupted: &AtomicBool,
) -> Result<std::process::ExitStatus, Failure> {
    loop {
        if let Some(status) = running.ended()? {
            return Ok(status);
        }
        if interrupted.load(Ordering::Relaxed) {
            running.stop_soon();
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// The summary is standard output's only with `--json` or without a command, whose own output stands there otherwise.
fn summary(
    arguments: &RecordArguments,
    streamed: &Streamed,
    took: Duration,
) -> Result<(), Failure> {
    let mut document = output::document("record");
    record_tables::add(&mut document, &arguments.folder, streamed, took);
    if arguments.command.is_empty() || arguments.output.json {
        output::print(&document, arguments.output)?;
    } else {
        document.write_text(&mut std::io::stderr().lock())?;
    }
    Ok(())
}
