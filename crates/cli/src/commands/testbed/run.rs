// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin testbed run`: what goes into the testbed for the command that runs there.

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::Parser;
use unspin_linux_guest::Programs;
use unspin_scenario::{Host, Overrides, Scenario};
use unspin_testbed::{Input, Machine, Options, Qemu};
use unspin_vmm::PauseLoop;

use crate::{
    commands::{
        Arguments, Command,
        bench::args::Bench,
        lab::args::LabVerb,
        testbed::{
            args::{Emulator, TestbedArguments},
            compare as testbed_compare,
            kvm::{kvm_amd_for, ple_module, windows_of},
            policies as testbed_policies,
        },
        vm::args::VmVerb,
    },
    terminal::failure::Failure,
};

/// Runs the command; the exit status is the command's own.
pub fn run(arguments: &TestbedArguments) -> Result<ExitCode, Failure> {
    let mut options = options(arguments)?;
    let prepared = testbed_policies::prepare(&arguments.command)?;
    options.inputs.extend(prepared.inputs.iter().cloned());
    let outcome = match testbed_compare::asked(&arguments.command) {
        Some(compare) => testbed_compare::run(&compare, &options, &prepared.command)?,
        None => unspin_testbed::run(&options, &prepared.command).map_err(anyhow::Error::from)?,
    };
    for file in &outcome.files {
        let folder = arguments.bring_back.as_deref().unwrap_or(Path::new(""));
        eprintln!(
            "unspin testbed: brought back {}",
            folder.join(file).display()
        );
    }
    // A status is 0 to 255 by the kernel's rules; anything else must not turn into success.
    Ok(ExitCode::from(u8::try_from(outcome.status).unwrap_or(1)))
}

fn options(arguments: &TestbedArguments) -> Result<Options, Failure> {
    let cache = unspin_testbed::cache_from_environment().map_err(anyhow::Error::from)?;
    let scenario = scenario_of(&arguments.command)?;
    let linux = linux_of(&arguments.command);
    let mut options = Options::new(cache);
    options.kernel = arguments.kernel.clone();
    options.cpus = arguments.cpus;
    options.memory_mib = arguments.memory_mib;
    options.deterministic = arguments.deterministic;
    options.qemu = match arguments.qemu {
        Emulator::Stock => Qemu::Stock,
        Emulator::Unspin => Qemu::Unspin,
    };
    options.time_limit = arguments.time_limit;
    options.bring_back = arguments.bring_back.clone();
    options.console_file = arguments.console.clone();
    options.inputs = inputs(&arguments.command);
    if let Some(linux) = &linux {
        check_memory(arguments.memory_mib, linux)?;
        let machine = Machine::find(&options.cache, options.qemu).map_err(anyhow::Error::from)?;
        let programs = Programs::find(false, &options.cache)?;
        options
            .inputs
            .extend(programs.inputs(&machine, &linux.programs, linux.our_kernel)?);
    }
    let host = linux.map(|linux| linux.host);
    let windows = windows_of(&arguments.command);
    if !windows.is_empty() {
        let machine = Machine::find(&options.cache, options.qemu).map_err(anyhow::Error::from)?;
        options
            .inputs
            .push(ple_module(&options.cache, &machine.kernel_version)?);
    }
    options.seed = scenario.as_ref().map_or(options.seed, |found| found.seed);
    if let Some(parameters) = scenario
        .map(|found| found.host)
        .or(host)
        .and_then(|host| PauseLoop::kvm_amd_parameters(&host))
        .or_else(|| kvm_amd_for(&windows))
    {
        options
            .module_parameters
            .insert("kvm_amd".into(), parameters);
    }
    Ok(options)
}

/// What the testbed has to hold for Linux guests.
#[derive(Debug)]
struct LinuxGuests {
    programs: Vec<&'static str>,
    our_kernel: bool,
    vms: u32,
    memory_mib: u32,
    host: Host,
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
            memory_mib: arguments.memory_mib,
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
            memory_mib: arguments.memory_mib,
            host: arguments.host(),
        }),
        _ => None,
    }
}

/// What the testbed needs beside its guests: kernel and programs take 400 MiB (the initramfs stands in memory twice
/// while it is unpacked), and each QEMU some 50 beside its guest's memory.
fn check_memory(memory_mib: u32, linux: &LinuxGuests) -> Result<(), Failure> {
    let needed = 512 + u64::from(linux.vms) * (u64::from(linux.memory_mib) + 50);
    if needed <= u64::from(memory_mib) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} guests of {} MiB need a testbed with --memory-mib {needed}; it has {memory_mib}",
        linux.vms, linux.memory_mib
    )))
}

/// The scenario of `unspin vm run ...` and `unspin compare ...`, recorded or not, read here first: a mistake in it is told before anything boots.
fn scenario_of(command: &[OsString]) -> Result<Option<Scenario>, Failure> {
    if command.first().is_none_or(|name| name != "unspin") {
        return Ok(None);
    }
    // Clap prints usage errors of the inner command itself, and leaves with status 2, as the outer one would.
    match Arguments::parse_from(command).command {
        Command::Vm(VmVerb::Run(arguments)) => arguments.scenario.load().map(Some),
        Command::Bench(Bench::Vm(arguments)) => {
            crate::commands::bench::vm::scenario(&arguments).map(Some)
        }
        Command::Compare(arguments) => {
            let chosen = crate::commands::compare::run::chosen(&arguments)?;
            Ok(chosen.into_iter().next().map(|chosen| chosen.scenario))
        }
        Command::Record(arguments) => scenario_of(&arguments.command),
        Command::Steer(arguments) => scenario_of(&arguments.command),
        Command::Lab(LabVerb::Calibrate(arguments)) => match &arguments.like {
            Some(file) => Ok(Some(Scenario::load(file, &Overrides::default())?)),
            None => Ok(None),
        },
        // KVM is loaded once: runs of scenarios that want it otherwise fail, and say so.
        Command::Outcomes(arguments) => Ok(arguments.scenarios()?.into_iter().next()),
        _ => Ok(None),
    }
}

/// The words of the command that name a file of this machine, to be found under the same name in the testbed.
fn inputs(command: &[OsString]) -> Vec<Input> {
    let file = |word: &OsString| {
        let path = Path::new(word);
        let metadata = path.metadata().ok().filter(|metadata| metadata.is_file())?;
        Some(Input {
            host: path.to_owned(),
            guest: path.to_owned(),
            executable: is_executable(&metadata),
        })
    };
    // Without a slash the command is looked for in PATH: `unspin` is this binary, whatever lies here under that name.
    let has_slash = |word: &OsString| word.as_encoded_bytes().contains(&b'/');
    let first = command.iter().take(1).filter(|word| has_slash(word));
    let words = first.chain(command.iter().skip(1));
    let mut inputs: Vec<Input> = words.filter_map(file).collect();
    inputs.dedup_by(|a, b| a.guest == b.guest);
    inputs
}

fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_itself_is_brought_where_it_is_a_path() {
        let brought = |line: &str| -> Vec<std::path::PathBuf> {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            inputs(&words)
                .into_iter()
                .map(|input| input.guest)
                .collect()
        };
        assert_eq!(
            brought("./Cargo.toml ./build.rs"),
            [Path::new("./Cargo.toml")]
        );
        assert_eq!(brought("Cargo.toml Cargo.toml"), [Path::new("Cargo.toml")]);
        assert!(brought("Cargo.toml").is_empty());
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
        check_memory(2048, &direct).expect("it fits");
        let refused = check_memory(1000, &direct).expect_err("too small");
        assert!(matches!(refused, Failure::Usage(text) if text.contains("--memory-mib 1124")));
    }

    #[test]
    fn files_that_the_command_names_go_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.toml");
        std::fs::write(&file, "x").expect("written");
        let words = [
            "unspin".into(),
            "vm".into(),
            file.clone().into(),
            folder.path().into(),
        ];
        let found = inputs(&words);
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].host, &found[0].guest), (&file, &file));
        assert!(!found[0].executable);
    }
}
