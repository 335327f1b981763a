// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler and a policy on this host, until Ctrl-C, a time, or the end of a command.

use std::{
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, ExitCode},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::Context;
use unspin_agent::{SliceSource, SteerCounter, SteerOptions, Steerer, base_slice};
use unspin_report::{Column, Document, Table, Unit};
use unspin_steering::Policies;

use crate::{
    arguments::SteerArguments, decision_log::DecisionFile, failure::Failure, interrupt, output,
    policy_choice::ChosenPolicies,
};

/// How often it is asked whether the kernel has sent the scheduler away.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Room for some 80,000 decisions between two looks.
const LOG_BYTES: u32 = 16 << 20;

const COUNTER: &[Column] = &[
    Column::new("counter", "counter", Unit::Text),
    Column::new("value", "since attach", Unit::Count),
    Column::new("says", "what it counts", Unit::Text),
];

/// Attaches, waits, detaches, prints the counters. The exit status is the command's where there is one.
pub fn run(arguments: &SteerArguments) -> Result<ExitCode, Failure> {
    let interrupted = interrupt::flag()?;
    let chosen = arguments.policy.ready(arguments.dry_run)?;
    let options = options(arguments, &chosen)?;
    let log = arguments.log_decisions.as_deref();
    let mut log = log.map(DecisionFile::create).transpose()?;
    let steerer = Steerer::attach(&options).map_err(anyhow::Error::from)?;
    say(&chosen, &steerer)?;
    let mut child = match arguments.command.split_first() {
        None => None,
        Some((program, words)) => {
            let child = Command::new(program).args(words).spawn();
            Some(child.with_context(|| format!("starting {}", program.to_string_lossy()))?)
        }
    };
    let began = Instant::now();
    let mut status = None;
    let end = loop {
        if let Some(child) = &mut child {
            status = child.try_wait()?;
        }
        write_decisions(&steerer, log.as_mut())?;
        let ended = steerer.ended().map_err(anyhow::Error::from)?;
        let over = arguments
            .duration
            .is_some_and(|limit| began.elapsed() >= limit);
        if status.is_some() || ended.is_some() || over || interrupted.load(Ordering::Relaxed) {
            break ended;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    write_decisions(&steerer, log.as_mut())?;
    log.map(DecisionFile::finish).transpose()?;
    let counters = steerer.counters().map_err(anyhow::Error::from)?;
    drop(steerer);
    // A command outlives its scheduler: what it did after that is its own.
    if let (Some(child), None) = (&mut child, status) {
        status = Some(child.wait()?);
    }
    let mut document = output::document("steer");
    add_counters(&mut document, &counters);
    // The command's own output stands on standard output.
    if arguments.command.is_empty() {
        output::print(&document, arguments.output)?;
    } else {
        document.write_text(&mut std::io::stderr().lock())?;
    }
    if let Some(end) = end {
        return Err(anyhow::anyhow!(
            "the kernel took its own scheduler back: {}: {}",
            end.reason,
            end.message
        )
        .into());
    }
    let code = status.map_or(0, |status| status.code().map_or(1, |code| code as u8));
    Ok(ExitCode::from(code))
}

/// Moves what was decided since the last call into the file, if there is one.
fn write_decisions(steerer: &Steerer, log: Option<&mut DecisionFile>) -> Result<(), Failure> {
    let Some(log) = log else {
        return Ok(());
    };
    let mut written = Ok(());
    let drained = steerer.drain_decisions(&mut |record| {
        if written.is_ok() {
            written = log.add(&record);
        }
    });
    drained.map_err(anyhow::Error::from)?;
    Ok(written?)
}

/// What is attached, in one line on standard error.
fn say(chosen: &ChosenPolicies, steerer: &Steerer) -> Result<(), Failure> {
    let source = match base_slice().map_err(anyhow::Error::from)?.1 {
        SliceSource::DebugFs => "the kernel's base_slice_ns",
        SliceSource::Rule => "the kernel's default by its rule: debugfs is not to be read",
    };
    eprintln!(
        "unspin: steering with policy {chosen}, slice {} us ({source})",
        steerer.slice_ns() as f64 / 1e3
    );
    Ok(())
}

fn options(arguments: &SteerArguments, chosen: &ChosenPolicies) -> Result<SteerOptions, Failure> {
    let cgroups = arguments.cgroups.iter().map(|folder| inode(folder));
    Ok(SteerOptions {
        policies: chosen.policies,
        own: chosen.own.clone(),
        slice_ns: None,
        processes: arguments.vms.clone(),
        cgroups: cgroups.collect::<Result<_, _>>()?,
        decision_log_bytes: match arguments.log_decisions {
            Some(_) => LOG_BYTES,
            None => 0,
        },
        ..SteerOptions::default()
    })
}

/// The number that the kernel knows a cgroup by.
fn inode(folder: &Path) -> Result<u64, Failure> {
    let metadata = folder
        .join("cgroup.procs")
        .metadata()
        .and_then(|_| folder.metadata());
    let metadata = metadata
        .map_err(|error| Failure::Usage(format!("{}: no cgroup: {error}", folder.display())))?;
    Ok(metadata.ino())
}

fn add_counters(document: &mut Document, counters: &[SteerCounter]) {
    let mut table = Table::new("steer", "What the scheduler did", COUNTER);
    for counter in counters {
        table.push(vec![
            counter.name.into(),
            counter.value.into(),
            counter.says.into(),
        ]);
    }
    document.table(table);
}

/// A list of policies on the command line.
pub fn parse_policies(text: &str) -> Result<Policies, String> {
    text.parse()
}
