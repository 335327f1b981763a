// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler and a policy on this host, until Ctrl-C, a time, or the end of a command.

pub(crate) mod args;
mod tables;

use std::{
    fmt::Display,
    ops::Range,
    path::Path,
    process::{Command, ExitCode, ExitStatus},
};

use args::SteerArguments;
use unspin_agent::{
    ChosenPolicies, Disclosures, PleSource, SECTIONS_MAX, SliceSource, SteerOptions, Until,
    WindowOptions, cgroup_number,
    steer::{self, Notice, SteerRequest},
};
use unspin_analysis::read_symbols;
use unspin_policy::critical_function;
use unspin_report::Document;

use crate::terminal::{failure::Failure, interrupt, output};

/// Room for some 80,000 decisions between two polls.
const LOG_BYTES: u32 = 16 << 20;

/// Attaches, waits, detaches, prints the counters. The exit status is the command's where there is one.
pub fn run(arguments: &SteerArguments) -> Result<ExitCode, Failure> {
    let dry = arguments.dry_run;
    if dry {
        let without = arguments.policy.without_window("a dry run");
        without.map_err(Failure::Usage)?;
    }
    let until = Until::new(interrupt::flag()?, arguments.duration);
    let request = request(arguments)?;
    let chosen = request.chosen.clone();
    let say = &mut |notice| say(&chosen, &notice);
    let mut document = output::document("steer");
    if dry {
        let done = steer::dry_run(request, until, say)?;
        tables::dry(&mut document, &chosen, &done);
        print(&document, arguments)?;
        return Ok(exit_code(done.status));
    }
    let done = steer::steer(request, until, say)?;
    tables::steered(&mut document, &done, arguments.output.json);
    print(&document, arguments)?;
    if let Some(end) = done.end {
        return Err(anyhow::anyhow!(
            "the kernel took its own scheduler back: {}: {}\n{}",
            end.reason,
            end.message,
            end.dump
        )
        .into());
    }
    Ok(exit_code(done.status))
}

fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(status.code().unwrap_or(1) as u8)
    })
}

fn request(arguments: &SteerArguments) -> Result<SteerRequest, Failure> {
    let chosen = arguments.policy.ready(arguments.dry_run)?;
    let options = options(arguments, &chosen)?;
    if chosen.window.is_some() && !arguments.cgroups.is_empty() {
        return Err(Failure::Usage(
            "pause-loop windows are set for --vm PROCESS or for everyone, not by --cgroup".into(),
        ));
    }
    let windows = chosen.window.map(|policy| WindowOptions {
        policy,
        processes: arguments.vms.clone(),
        module: match &arguments.ple_module {
            _ if arguments.sets_thresholds() => PleSource::Nowhere,
            Some(file) => PleSource::File(file.clone()),
            None => PleSource::Installed,
        },
        disclosures: options.disclosures.clone(),
    });
    let command = arguments.command.split_first();
    Ok(SteerRequest {
        chosen,
        options,
        windows,
        log: arguments.log_decisions.clone(),
        command: command.map(|(program, words)| {
            let mut command = Command::new(program);
            command.args(words);
            command
        }),
    })
}

fn options(arguments: &SteerArguments, chosen: &ChosenPolicies) -> Result<SteerOptions, Failure> {
    let no_cgroup = |error: unspin_agent::NoCgroup| Failure::Usage(error.to_string());
    let cgroups = arguments.cgroups.iter();
    let cgroups = cgroups.map(|folder| cgroup_number(folder).map_err(no_cgroup));
    Ok(SteerOptions {
        policies: chosen.policies,
        user_policy: chosen.user_policy.clone(),
        processes: arguments.vms.clone(),
        cgroups: cgroups.collect::<Result<_, _>>()?,
        disclosures: Disclosures::of(&arguments.disclose).map_err(no_cgroup)?,
        sections: arguments
            .sections
            .as_deref()
            .map_or(Ok(Vec::new()), sections)?,
        decision_log_bytes: match arguments.log_decisions {
            Some(_) => LOG_BYTES,
            None => 0,
        },
        ..SteerOptions::default()
    })
}

/// The pieces of the guests' kernel that only run inside critical sections.
fn sections(file: &Path) -> Result<Vec<Range<u64>>, Failure> {
    let wrong = |error: &dyn Display| Failure::Usage(format!("{}: {error}", file.display()));
    let symbols = read_symbols(file)?;
    let pieces = symbols.pieces(|name| critical_function(name).is_some());
    match pieces.len() {
        0 => Err(wrong(
            &"no function in it is one that only runs inside critical sections; is it a Linux kernel's?",
        )),
        1..=SECTIONS_MAX => Ok(pieces),
        many => Err(wrong(&format!(
            "{many} such functions, {SECTIONS_MAX} are the most"
        ))),
    }
}

/// What happens meanwhile, in one line on standard error.
fn say(chosen: &ChosenPolicies, notice: &Notice) {
    match notice {
        Notice::Thresholds => eprintln!(
            "unspin: no module that sets windows: guests with a pv page are told how long to spin (README, Steering)"
        ),
        Notice::WindowsAlone => {
            eprintln!("unspin: setting windows by policy {chosen}; the host's scheduler stays");
        }
        Notice::Attached { slice_ns, source } => {
            let source = match source {
                SliceSource::DebugFs => "the kernel's base_slice_ns",
                SliceSource::Rule => "the kernel's default by its rule: debugfs is not to be read",
            };
            eprintln!(
                "unspin: steering with policy {chosen}; slice {} us ({source}){}",
                *slice_ns as f64 / 1e3,
                if chosen.policies.slice_ns() == 0 {
                    ""
                } else {
                    ", but for the vCPUs that the policy `slice` is for"
                }
            );
        }
        Notice::DryRun { slice_ns } => eprintln!(
            "unspin: dry run of policy {chosen}: nothing is attached to the scheduler; a slice counts as {} us",
            *slice_ns as f64 / 1e3
        ),
        Notice::Dishonest { process, says } => eprintln!(
            "unspin: warning: the guest of VM process {process} {}; its claims buy it no CPU time, and nobody else loses any",
            says.join("; it ")
        ),
    }
}

/// Prints the document: on standard output, or on standard error beside a command, whose output stands on the other.
fn print(document: &Document, arguments: &SteerArguments) -> Result<(), Failure> {
    if arguments.command.is_empty() {
        return Ok(output::print(document, arguments.output)?);
    }
    let mut out = std::io::stderr().lock();
    match arguments.output.json {
        true => document.write_json(&mut out)?,
        false => document.write_text(&mut out)?,
    }
    Ok(())
}
