// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler and a policy on this host, until Ctrl-C, a time, or the end of a command.

pub(crate) mod args;
mod tables;

use std::{
    fmt::Display,
    io::{self, Write},
    ops::Range,
    path::Path,
    process::{Command, ExitCode, ExitStatus},
};

use args::SteerArguments;
use unspin_agent::{
    ChosenPolicies, Disclosures, Epochs, Explained, Numbered, PleSource, SECTIONS_MAX, SteerEnd,
    SteerError, SteerOptions, Until, UserPolicy, WindowOptions, cgroup_number,
    service::{self, EndRow, FailureFile, Latch, LatchError},
    steer::{
        self, Notice, SteerRequest, SteerRunError,
        vm_choice::{self, ChosenVm, touched},
    },
};
use unspin_analysis::read_symbols;
use unspin_config::{Configuration, SteerSettings};
use unspin_policy::critical_function;
use unspin_report::{Machine, Table};

use crate::terminal::{failure::Failure, interrupt, output, service_manager::ServiceManager};

/// Room for some 80,000 decisions between two polls.
const LOG_BYTES: u32 = 16 << 20;

/// The kernel has taken its own scheduler back.
const TAKEN_BACK: u8 = 3;

/// Attaches, waits, detaches, prints the counters. The exit status is the command's where there is one, and 3 where the kernel
/// has taken its own scheduler back.
pub fn run(arguments: &SteerArguments) -> Result<ExitCode, Failure> {
    if arguments.clear_latch {
        writeln!(io::stdout(), "{}", service::clear()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let configuration = Configuration::load(arguments.config.as_deref())?;
    let settings = SteerSettings::of(arguments.given(), &configuration.config.steer)
        .map_err(Failure::Usage)?;
    let latch = arguments.service.then(Latch::claim).transpose()?;
    let mut manager = ServiceManager::here();
    let until = Until::new(interrupt::flag()?, arguments.duration);
    let until = until.with_beat(move || manager.alive());
    let file = FailureFile::of(arguments.dump.as_deref())?;
    let request = request(arguments, &settings)?;
    match settings.dry_run {
        true => dry_run(arguments, request, until, &file),
        false => steer_host(arguments, request, until, &file, latch),
    }
}

fn dry_run(
    arguments: &SteerArguments,
    request: SteerRequest,
    until: Until,
    file: &FailureFile,
) -> Result<ExitCode, Failure> {
    let chosen = request.chosen.clone();
    let say = &mut |notice| {
        output::say(steer::words(&chosen, &notice));
        ServiceManager::here().ready(&format!("dry run of policy {chosen}"));
    };
    let done = steer::dry_run(request, until, say);
    let done = done.map_err(|error| refused(file, &chosen, error))?;
    let mut document = output::document("steer");
    tables::dry(&mut document, &chosen, &done);
    output::print_beside(&document, arguments.output, !arguments.command.is_empty())?;
    Ok(exit_code(done.status))
}

fn steer_host(
    arguments: &SteerArguments,
    request: SteerRequest,
    until: Until,
    file: &FailureFile,
    latch: Option<Latch>,
) -> Result<ExitCode, Failure> {
    let chosen = request.chosen.clone();
    let explained = arguments.explain_choice.as_ref();
    let explained = explained.map(Explained::running).transpose()?;
    let mut epochs = Epochs::of(Numbered::Processes, explained, |set| {
        set.policies().to_string()
    });
    let mut end = None;
    let mut attached = false;
    let say = &mut |notice| match notice {
        Notice::TakenBack(why) => end = Some(taken_back(file, &chosen, &why)),
        Notice::Chosen(step) => output::say(epochs.add(&step)),
        other => {
            output::say(steer::words(&chosen, &other));
            if matches!(other, Notice::Attached { .. } | Notice::WindowsAlone) {
                attached = true;
                ServiceManager::here().ready(&format!("steering with policy {chosen}"));
            }
        }
    };
    if let Some(latch) = &latch {
        latch.steering(&chosen.to_string())?;
    }
    let mut document = output::document("steer");
    let status = match steer::steer(request, until, say) {
        Ok(done) => {
            tables::steered(&mut document, &done, arguments.output.json);
            epochs.table(&mut document);
            Ok(exit_code(done.status))
        }
        Err(SteerRunError::Steer(SteerError::TakenBack { end: why })) => {
            end = Some(taken_back(file, &chosen, &why));
            Ok(ExitCode::from(TAKEN_BACK))
        }
        Err(error) => Err(refused(file, &chosen, error)),
    };
    if let Some(latch) = latch {
        ended(
            latch,
            &chosen,
            end.as_ref(),
            status.as_ref().err(),
            attached,
        )?;
    }
    let status = status?;
    let status = match end {
        None => status,
        Some(end) => {
            document.table(Table::of(
                "Why the kernel took its own scheduler back",
                [end],
            ));
            ExitCode::from(TAKEN_BACK)
        }
    };
    output::print_beside(&document, arguments.output, !arguments.command.is_empty())?;
    Ok(status)
}

/// How it ended, as the latch keeps it. What failed before anything was attached has done nothing to the host, and is no reason to
/// stay off: a kernel without sched_ext, a module that is missing.
fn ended(
    latch: Latch,
    chosen: &ChosenPolicies,
    end: Option<&EndRow>,
    failure: Option<&Failure>,
    attached: bool,
) -> Result<(), LatchError> {
    let policy = chosen.to_string();
    match (end, failure) {
        (Some(end), _) => {
            let why = match end.message.as_str() {
                "" => end.reason.clone(),
                message => format!("{}: {message}", end.reason),
            };
            latch.taken_back(&policy, &why, end.advice, end.dump_file.as_deref())
        }
        (None, Some(failure)) if attached => latch.fault(&policy, &failure.in_words()),
        (None, _) => latch.release(),
    }
}

/// Says at once that the kernel has taken its own scheduler back, and keeps what it says.
fn taken_back(file: &FailureFile, chosen: &ChosenPolicies, end: &SteerEnd) -> EndRow {
    let (row, lines) = service::keep_end(file, &head(), chosen, end);
    output::say(lines);
    row
}

/// An error whose log, where it is longer than what is shown, is kept.
fn refused(file: &FailureFile, chosen: &ChosenPolicies, error: SteerRunError) -> Failure {
    let log = error.kernel_log().filter(|log| log.is_cut());
    let kept = log.map(|log| {
        let text = format!("{}policy {chosen}\n\n{}", head(), log.text());
        match file.keep(&text) {
            Ok(path) => format!("the whole log is in {}", path.display()),
            Err(not_kept) => format!("the whole log: {}", not_kept.says(&text)),
        }
    });
    match kept {
        Some(kept) => Failure::Failed(anyhow::anyhow!("{error}\nunspin: {kept}")),
        None => error.into(),
    }
}

/// Who says it, where.
fn head() -> String {
    let machine = Machine::here(output::in_testbed());
    format!("unspin {} steer, {machine}\n", env!("CARGO_PKG_VERSION"))
}

fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(status.code().unwrap_or(1) as u8)
    })
}

fn request(arguments: &SteerArguments, settings: &SteerSettings) -> Result<SteerRequest, Failure> {
    let chosen = settings.policy.ready(settings.dry_run)?;
    let vms = vm_choice::running(&settings.vms)?;
    let options = options(arguments, settings, &chosen, &vms)?;
    if arguments.explain_choice.is_some() && !chosen.auto {
        return Err(Failure::Usage(
            "--explain-choice is for --policy auto, which chooses".into(),
        ));
    }
    let windows = chosen.window.map(|policy| WindowOptions {
        policy,
        processes: touched(&vms),
        module: match &settings.ple_module {
            _ if settings.sets_thresholds() => PleSource::Nowhere,
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

fn options(
    arguments: &SteerArguments,
    settings: &SteerSettings,
    chosen: &ChosenPolicies,
    vms: &[ChosenVm],
) -> Result<SteerOptions, Failure> {
    let no_cgroup = |error: unspin_agent::NoCgroup| Failure::Usage(error.to_string());
    let cgroups = settings.cgroups.iter();
    let cgroups = cgroups.map(|folder| cgroup_number(folder).map_err(no_cgroup));
    Ok(SteerOptions {
        policies: chosen.policies,
        candidates: chosen.auto,
        user_policy: chosen.user_policy.clone(),
        processes: touched(vms),
        vm_policies: vm_choice::policies_of(vms, chosen.user_policy.as_ref().map(UserPolicy::name))
            .map_err(Failure::Usage)?,
        cgroups: cgroups.collect::<Result<_, _>>()?,
        only_vms: settings.only_vms,
        disclosures: Disclosures::of(&settings.disclose)
            .map_err(|error| Failure::Usage(error.to_string()))?,
        sections: settings
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
