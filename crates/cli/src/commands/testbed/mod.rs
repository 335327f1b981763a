// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin testbed run`: the emulated KVM host, and what goes into it for the command that runs there.

pub(crate) mod args;
pub(crate) mod boots;
mod compare;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::Parser;
use unspin_agent::PolicyChoice;
use unspin_experiment::{
    in_testbed::{LinuxGuests, Needs, prepare},
    rival::Rival,
};
use unspin_policy::steering::WindowPolicy;
use unspin_scenario::{Overrides, Scenario};
use unspin_testbed::{Input, Options, Qemu, Topology};

use crate::{
    commands::{
        Arguments, Command,
        bench::args::Bench,
        lab::args::LabVerb,
        testbed::args::{Emulator, TestbedArguments},
        vm::args::VmVerb,
    },
    terminal::failure::Failure,
};

/// Runs the command; the exit status is the command's own.
pub fn run(arguments: &TestbedArguments) -> Result<ExitCode, Failure> {
    let mut options = options(arguments)?;
    let prepared = prepare(&arguments.command)?;
    options.inputs.extend(prepared.inputs.iter().cloned());
    let outcome = match compare::asked(&arguments.command) {
        Some(compare) => compare::run(&compare, &options, &prepared.command)?,
        None => unspin_testbed::run(&options, &prepared.command).map_err(anyhow::Error::from)?,
    };
    for file in &outcome.files {
        let folder = arguments.bring_back.as_deref().unwrap_or(Path::new(""));
        let file = folder.join(file);
        eprintln!("unspin testbed: brought back {}", file.display());
    }
    // A status is 0 to 255 by the kernel's rules; anything else must not turn into success.
    Ok(ExitCode::from(u8::try_from(outcome.status).unwrap_or(1)))
}

fn options(arguments: &TestbedArguments) -> Result<Options, Failure> {
    let cache = unspin_testbed::cache_from_environment().map_err(anyhow::Error::from)?;
    let needs = Needs {
        scenario: scenario_of(&arguments.command)?,
        linux: linux_of(&arguments.command),
        windows: windows_of(&arguments.command),
        rivals: rivals_of(&arguments.command),
    };
    let mut options = Options::new(cache);
    options.kernel = arguments.kernel.clone();
    options.vendor = arguments.machine.into();
    let of_topology = arguments.topology.map(Topology::cpus);
    options.cpus = arguments.cpus.or(of_topology).unwrap_or(options.cpus);
    options.topology = arguments.topology;
    options.memory_mib = arguments.memory_mib;
    options.deterministic = arguments.deterministic;
    options.qemu = match arguments.qemu {
        Emulator::Stock => Qemu::Stock,
        Emulator::Unspin => Qemu::Unspin,
    };
    options.time_limit = arguments.time_limit;
    options.bring_back = arguments.bring_back.clone();
    options.console_file = arguments.console.clone();
    options.inputs =
        Input::of(&arguments.command, &arguments.bring).map_err(anyhow::Error::from)?;
    needs.add_to(&mut options)?;
    Ok(options)
}

/// Who sets pause-loop windows, when the command is `unspin steer`, records it, or compares.
fn windows_of(command: &[OsString]) -> Vec<WindowPolicy> {
    if command.first().is_none_or(|name| name != "unspin") {
        return Vec::new();
    }
    match Arguments::parse_from(command).command {
        // Thresholds in their place need no module, nor a KVM that leaves windows alone.
        Command::Steer(arguments) if arguments.sets_thresholds() => Vec::new(),
        Command::Steer(arguments) => {
            let policy = arguments.policy.iter();
            policy.filter_map(|policy| policy.window()).collect()
        }
        Command::Compare(arguments) => {
            let windows = arguments.policies.iter().map(PolicyChoice::window);
            windows.flatten().collect()
        }
        Command::Record(arguments) => windows_of(&arguments.command),
        Command::Serve(arguments) => windows_of(&arguments.command),
        Command::Top(arguments) => windows_of(&arguments.command),
        _ => Vec::new(),
    }
}

/// The other schedulers of a comparison.
fn rivals_of(command: &[OsString]) -> Vec<Rival> {
    if command.first().is_none_or(|name| name != "unspin") {
        return Vec::new();
    }
    match Arguments::parse_from(command).command {
        Command::Compare(arguments) => arguments.rivals,
        Command::Bench(Bench::Host(arguments)) => arguments.rivals,
        Command::Vm(VmVerb::LinuxPolicies(arguments)) => arguments.rivals,
        Command::Record(arguments) => rivals_of(&arguments.command),
        _ => Vec::new(),
    }
}

/// `unspin vm linux ...`, `linux-locks` and `linux-policies`, also as the command of another one: QEMU and the guests' programs have to be in
/// the testbed.
fn linux_of(command: &[OsString]) -> Option<LinuxGuests> {
    let command = &command[command.iter().rposition(|word| word == "unspin")?..];
    let verb = command.get(2)?;
    let verbs = ["linux", "linux-locks", "linux-policies"];
    if command.get(1)? != "vm" || !verbs.iter().any(|of_linux| verb == of_linux) {
        return None;
    }
    match Arguments::parse_from(command).command {
        Command::Vm(VmVerb::Linux(arguments)) => Some(LinuxGuests {
            programs: arguments.programs(),
            our_kernel: arguments.lock.is_some(),
            vms: arguments.vms,
            memory_mib: arguments.memory_mib(),
            host: arguments.host(),
        }),
        Command::Vm(VmVerb::LinuxLocks(arguments)) => Some(LinuxGuests {
            programs: arguments.programs(),
            our_kernel: arguments.our_kernel(),
            vms: arguments.vms.iter().copied().max().unwrap_or(1),
            memory_mib: arguments.memory_mib,
            host: arguments.host(),
        }),
        Command::Vm(VmVerb::LinuxPolicies(arguments)) => Some(LinuxGuests {
            programs: arguments.programs(),
            our_kernel: false,
            vms: arguments.vms(),
            memory_mib: arguments.memory_mib(),
            host: arguments.host(),
        }),
        _ => None,
    }
}

/// The scenario of `unspin vm run ...` and `unspin compare ...`, recorded or not, also behind another program (as in
/// `sh -c 'nice "$@"' sh unspin vm run ...`), read here first: a mistake in it is told before anything boots.
fn scenario_of(command: &[OsString]) -> Result<Option<Scenario>, Failure> {
    let Some(at) = command.iter().position(|word| word == "unspin") else {
        return Ok(None);
    };
    let arguments = match Arguments::try_parse_from(&command[at..]) {
        Ok(arguments) => arguments,
        // Clap prints usage errors of the inner command itself, and leaves with status 2, as the outer one would.
        Err(error) if at == 0 => error.exit(),
        // The word was another program's.
        Err(_) => return Ok(None),
    };
    match arguments.command {
        Command::Vm(VmVerb::Run(arguments)) => arguments.scenario.load().map(Some),
        Command::Bench(Bench::Vm(arguments)) => {
            crate::commands::bench::vm::scenario(&arguments).map(Some)
        }
        Command::Compare(arguments) => {
            let chosen = crate::commands::compare::chosen(&arguments)?;
            Ok(chosen.into_iter().next().map(|chosen| chosen.scenario))
        }
        Command::Record(arguments) => scenario_of(&arguments.command),
        Command::Steer(arguments) => scenario_of(&arguments.command),
        Command::Tune(arguments) => scenario_of(&arguments.command),
        Command::Canary(arguments) => scenario_of(&arguments.command),
        Command::Serve(arguments) => scenario_of(&arguments.command),
        Command::Top(arguments) => scenario_of(&arguments.command),
        Command::Lab(LabVerb::Calibrate(arguments)) => match &arguments.like {
            Some(file) => Ok(Some(Scenario::load(file, &Overrides::default())?)),
            None => Ok(None),
        },
        // KVM is loaded once: runs of scenarios that want it otherwise fail, and say so.
        Command::Outcomes(arguments) => Ok(arguments.scenarios()?.into_iter().next()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sets_windows_is_found() {
        let found = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            windows_of(&words).len()
        };
        for (line, windows) in [
            ("unspin steer --policy loan,apple", 1),
            (
                "unspin record /out/r -- unspin steer --policy apple=8/64/64/512",
                1,
            ),
            (
                "unspin compare s.toml --policy apple --policy loan --policy window=500,loan",
                2,
            ),
            ("unspin steer --policy loan", 0),
            ("unspin compare s.toml --policy loan", 0),
            ("ls", 0),
        ] {
            assert_eq!(found(line), windows, "{line}");
        }
    }

    #[test]
    fn scenarios_are_found_behind_other_programs() {
        let demo = "../../scenarios/demo/2x4-ticket.toml";
        for (line, is_found) in [
            ("unspin serve -- unspin top --once -- unspin vm run", true),
            ("unspin serve -- sh -c script sh unspin vm run", true),
            ("ls unspin", false),
        ] {
            let words: Vec<OsString> = line.split(' ').chain([demo]).map(Into::into).collect();
            let found = scenario_of(&words).expect("no mistake in it");
            assert_eq!(found.is_some(), is_found, "{line}");
        }
    }

    #[test]
    fn rivals_of_every_comparison_are_found() {
        use Rival::{Bpfland, Lavd, Rusty};
        for (line, rivals) in [
            (
                "unspin compare s.toml --rival scx_lavd,scx_rusty --rival scx_bpfland",
                &[Lavd, Rusty, Bpfland][..],
            ),
            ("unspin bench host --rival scx_rusty", &[Rusty]),
            ("unspin vm linux-policies --rival scx_lavd", &[Lavd]),
            (
                "unspin record /out/r -- unspin compare s.toml --rival scx_lavd",
                &[Lavd],
            ),
            ("unspin compare s.toml --policy loan", &[]),
            ("ls --rival scx_lavd", &[]),
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(rivals_of(&words), rivals, "{line}");
        }
    }

    #[test]
    fn linux_guests_are_found_behind_another_command() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(Into::into).collect() };
        let found = |line| linux_of(&words(line));
        let direct = found("unspin vm linux --vms 2 --ple-window 200").expect("linux");
        assert_eq!((direct.vms, direct.host.ple_window), (2, Some(200)));
        assert_eq!(
            direct.programs,
            ["qemu-system-x86_64", "busybox", "hackbench"]
        );
        let behind = found("unspin record /out/r -- unspin vm linux --load idle").expect("linux");
        assert_eq!(behind.programs, ["qemu-system-x86_64", "busybox"]);
        let locks = found("unspin vm linux-locks --vms 1,3 --locks stock,ticket --loads mmaps");
        let locks = locks.expect("linux");
        assert_eq!((locks.vms, locks.our_kernel), (3, true));
        assert_eq!(locks.programs, ["busybox", "mmaps", "qemu-system-x86_64"]);
        let line =
            "unspin vm linux-policies --shapes 1x4,3x2 --loads make --ple-gap 9 --policy gang";
        let policies = found(line).expect("linux");
        assert_eq!((policies.vms, policies.our_kernel), (3, false));
        assert_eq!(policies.programs, ["busybox", "make", "qemu-system-x86_64"]);
        assert_eq!(policies.host.ple_gap, Some(9));
        assert!(!direct.our_kernel);
        for other in ["unspin vm run s.toml", "vm linux", "unspin", "ls"] {
            assert!(found(other).is_none(), "{other}");
        }
    }
}
