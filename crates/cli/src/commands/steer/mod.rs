// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler and a policy on this host, until Ctrl-C, a time, or the end of a command.

pub(crate) mod args;
#[path = "../../../../agent/src/service/failure_file.rs"]
mod failure_file;
#[path = "../../../../agent/src/service/latch.rs"]
mod latch;
mod settings;
mod tables;

use std::{
    fmt::Display,
    ops::Range,
    path::Path,
    process::{Command, ExitCode, ExitStatus},
};

use args::SteerArguments;
use failure_file::FailureFile;
use latch::Latch;
use settings::SteerSettings;
use tables::EndRow;
use unspin_agent::{
    ChosenPolicies, DeadlineServer, Disclosures, MovedVm, PleSource, SECTIONS_MAX, SliceSource,
    SteerEnd, SteerError, SteerOptions, Until, UserPolicy, WindowOptions, cgroup_number,
    steer::{self, Notice, SteerRequest, SteerRunError},
};
use unspin_analysis::read_symbols;
use unspin_policy::critical_function;
use unspin_report::{Machine, Table};

use super::{
    config::Configuration,
    epochs::{Epochs, Explained, Numbered},
    vm_choice::{self, ChosenVm, touched},
    vm_name::in_words,
};
use crate::terminal::{failure::Failure, interrupt, output, service_manager::ServiceManager};

/// Room for some 80,000 decisions between two polls.
const LOG_BYTES: u32 = 16 << 20;

/// The kernel has taken its own scheduler back.
const TAKEN_BACK: u8 = 3;

/// Attaches, waits, detaches, prints the counters. The exit status is the command's where there is one, and 3 where the kernel
/// has taken its own scheduler back.
pub fn run(arguments: &SteerArguments) -> Result<ExitCode, Failure> {
    if arguments.clear_latch {
        return latch::clear().map(|()| ExitCode::SUCCESS);
    }
    let configuration = Configuration::load(arguments.config.as_deref())?;
    let settings = SteerSettings::of(arguments, &configuration.config.steer)?;
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
        say(&chosen, &notice);
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
        Notice::Chosen(step) => epochs.add(&step),
        other => {
            say(&chosen, &other);
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
) -> Result<(), Failure> {
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
    let dump = match end.dump.as_str() {
        "" => "(the kernel makes no dump of such an end)\n",
        dump => dump,
    };
    let advice = end.advice();
    let text = format!(
        "{}policy {chosen}\n{}: {end}\n{advice}\n\n{dump}",
        head(),
        end.kind.name()
    );
    let kept = file.keep(&text);
    eprintln!("unspin: the kernel took its own scheduler back: {end}\nunspin: {advice}");
    match &kept {
        Ok(path) => eprintln!("unspin: what it says of that is in {}", path.display()),
        Err(not_kept) => eprintln!("unspin: what it says of that: {}", not_kept.says(&text)),
    }
    if end.dump_is_cut() {
        eprintln!(
            "unspin: there was more to its dump than the {} KiB that it is given room for",
            end.dump.len() >> 10
        );
    }
    EndRow {
        kind: end.kind.name(),
        reason: end.reason.clone(),
        message: end.message.clone(),
        advice,
        dump_file: kept.ok().map(|path| path.display().to_string()),
        dump_bytes: end.dump.len(),
        dump_is_cut: end.dump_is_cut(),
    }
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
        Notice::OnlyVms {
            server,
            left_behind,
        } => only_vms(*server, *left_behind),
        Notice::Moved(vms) => eprintln!("unspin: {}", moved(vms)),
        Notice::DryRun { slice_ns } => eprintln!(
            "unspin: dry run of policy {chosen}: nothing is attached to the scheduler; a slice counts as {} us",
            *slice_ns as f64 / 1e3
        ),
        Notice::Dishonest { process, says } => eprintln!(
            "unspin: warning: the guest of {} {}; its claims buy it no CPU time, and nobody else loses any",
            in_words(*process),
            says.join("; it ")
        ),
        Notice::NoKvm => eprintln!(
            "unspin: KVM is not loaded: there are no VMs to choose for, and those that start later are not seen; load it and start steer again"
        ),
        // Said elsewhere.
        Notice::Chosen(_) | Notice::TakenBack(_) => {}
    }
}

fn only_vms(server: DeadlineServer, left_behind: usize) {
    let kept = match server {
        DeadlineServer::Missing => "nothing: this kernel has no deadline server for sched_ext (Linux 7.0 has), and where one of them does not run for 30 s it takes its own scheduler back".to_owned(),
        DeadlineServer::Keeps(Some(0.0)) => "nothing: the kernel's deadline server for sched_ext is switched off (/sys/kernel/debug/sched/ext_server)".to_owned(),
        DeadlineServer::Keeps(percent) => format!("{} % of each CPU", percent.unwrap_or(5.0)),
    };
    eprintln!(
        "unspin: only VMs; everything else goes before them, and beside tasks that never sleep they get {kept}"
    );
    if left_behind > 0 {
        eprintln!(
            "unspin: {left_behind} threads of VMs had SCHED_EXT from a steer that was killed; they had their policy set back first"
        );
    }
}

/// What is under the scheduler where only VMs are.
fn moved(vms: &[MovedVm]) -> String {
    const SHOWN: usize = 5;
    let sum = |of: fn(&MovedVm) -> u64| vms.iter().map(of).sum::<u64>();
    let (vcpus, others) = (sum(|vm| vm.vcpus), sum(|vm| vm.others));
    let with_page = match others {
        0 => String::new(),
        others => format!(" and {others} threads with a page"),
    };
    let last = vms[vms.len().saturating_sub(SHOWN)..].iter();
    let last: Vec<String> = last
        .map(|vm| format!("{} ({}): {}", vm.name, vm.process, vm.vcpus + vm.others))
        .collect();
    let more = match vms.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("{more} more, "),
    };
    let left = [
        (sum(|vm| vm.real_time), "real-time threads left as they are"),
        (
            sum(|vm| vm.refused),
            "threads that the kernel did not let be moved",
        ),
    ];
    let left: String = left
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("; {count} {what}"))
        .collect();
    format!(
        "{vcpus} vCPU threads{with_page} of {} VMs moved so far: {more}{}{left}",
        vms.len(),
        last.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(process: u32, vcpus: u64) -> MovedVm {
        MovedVm {
            process: process.to_string(),
            name: "qemu".into(),
            vcpus,
            ..MovedVm::default()
        }
    }

    #[test]
    fn what_was_moved_is_said_in_a_line() {
        assert_eq!(
            moved(&[vm(7, 2), vm(9, 4)]),
            "6 vCPU threads of 2 VMs moved so far: qemu (7): 2, qemu (9): 4"
        );
        let mut many: Vec<MovedVm> = (1..=7).map(|process| vm(process, 1)).collect();
        many[6].others = 1;
        many[6].real_time = 3;
        let said = moved(&many);
        assert!(
            said.starts_with("7 vCPU threads and 1 threads with a page of 7 VMs moved so far: 2 more, qemu (3): 1, "),
            "{said}"
        );
        assert!(
            said.ends_with("qemu (7): 2; 3 real-time threads left as they are"),
            "{said}"
        );
    }
}
