// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed does what it promises.

use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use unspin_testbed::{Input, Options, run_with};

use crate::{inside, options, ran};

pub fn output_files_and_status_come_back() -> Result<(), Failed> {
    come_back(options()?)
}

/// A file goes in, comes back by standard output and as a file, and the exit status with it.
pub fn come_back(mut options: Options) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("input");
    std::fs::write(&input, inside::pattern(300_000))?;
    options.inputs.push(Input {
        host: input,
        guest: "some/where/input".into(),
        executable: false,
    });
    options.bring_back = Some(folder.path().join("out"));
    options.environment.insert("MARK".into(), "set".into());
    let ran = ran(&options, &["echo", "some/where/input"])?;
    assert_eq!(ran.outcome.status, 7);
    assert!(
        ran.stdout == inside::pattern(300_000),
        "{} bytes came back",
        ran.stdout.len()
    );
    assert!(
        ran.stderr
            .ends_with("to standard error, without a newline: set"),
        "{}",
        ran.stderr
    );
    let names: Vec<_> = ran
        .outcome
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(names, ["a", "deep/er/copy"]);
    assert_eq!(std::fs::read(folder.path().join("out/a"))?, b"");
    assert!(std::fs::read(folder.path().join("out/deep/er/copy"))? == inside::pattern(300_000));
    assert!(ran.outcome.boot_ns > 0 && ran.outcome.command_start_ns >= ran.outcome.boot_ns);
    Ok(())
}

pub fn kvm_and_every_file_system_are_there() -> Result<(), Failed> {
    let ran = ran(&options()?, &["look"])?;
    assert_eq!((ran.outcome.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "/dev/kvm answers with version 12\n"
    );
    Ok(())
}

pub fn the_clock_runs_at_the_hosts_pace() -> Result<(), Failed> {
    let ran = ran(&options()?, &["clock"])?;
    let believed: u64 = String::from_utf8_lossy(&ran.stdout).trim().parse()?;
    let first = (rdtsc(), Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    let last = (rdtsc(), Instant::now());
    let real = (last.0 - first.0) * 1_000 / last.1.duration_since(first.1).as_micros() as u64;
    // One part in a hundred is what the kernel's own refinement may still change.
    let off = believed.abs_diff(real);
    assert!(
        off * 50 < real,
        "the testbed believes {believed} kHz, the host has {real}"
    );
    Ok(())
}

fn rdtsc() -> u64 {
    // SAFETY: reads a counter that every x86-64 CPU has; no memory is touched.
    unsafe { std::arch::x86_64::_rdtsc() }
}

pub fn module_parameters_arrive() -> Result<(), Failed> {
    let mut options = options()?;
    options.module_parameters.insert(
        "kvm_amd".into(),
        "pause_filter_count=123 pause_filter_thresh=45".into(),
    );
    let path = "/sys/module/kvm_amd/parameters/pause_filter_";
    let ran = ran(
        &options,
        &["print", &format!("{path}count"), &format!("{path}thresh")],
    )?;
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "123\n45\n");
    Ok(())
}

/// As lscpu reads it: threads of a core, CPUs of a last-level cache, CPUs and memory of a node.
pub fn the_kernel_sees_the_topology() -> Result<(), Failed> {
    let mut options = options()?;
    options.topology = Some("2x2x1x2".parse()?);
    options.cpus = 8;
    let system = "/sys/devices/system";
    let ran = ran(
        &options,
        &[
            "print",
            &format!("{system}/cpu/cpu3/topology/thread_siblings_list"),
            &format!("{system}/cpu/cpu3/cache/index3/shared_cpu_list"),
            &format!("{system}/cpu/cpu3/topology/package_cpus_list"),
            &format!("{system}/node/node1/cpulist"),
            &format!("{system}/cpu/cpu6/cache/index3/shared_cpu_list"),
            &format!("{system}/node/has_memory"),
        ],
    )?;
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "2-3\n2-3\n0-3\n4-7\n6-7\n0-1\n"
    );
    Ok(())
}

pub fn a_command_that_is_not_there_gives_127() -> Result<(), Failed> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let outcome = run_with(
        &options()?,
        &["no-such-command".into()],
        &mut stdout,
        &mut stderr,
    )?;
    assert_eq!(outcome.status, 127);
    assert!(
        String::from_utf8_lossy(&stderr).contains("no-such-command: No such file"),
        "{stderr:?}"
    );
    Ok(())
}

pub fn a_signal_gives_128_and_its_number() -> Result<(), Failed> {
    assert_eq!(ran(&options()?, &["die"])?.outcome.status, 128 + 9);
    Ok(())
}

pub fn what_the_command_left_running_ends_with_it() -> Result<(), Failed> {
    let ran = ran(&options()?, &["leave-a-child"])?;
    assert_eq!(
        (
            ran.outcome.status,
            String::from_utf8_lossy(&ran.stdout).as_ref()
        ),
        (0, "parent\n")
    );
    assert!(
        ran.outcome.wall < Duration::from_secs(60),
        "{:?}",
        ran.outcome.wall
    );
    Ok(())
}

pub fn two_deterministic_runs_give_the_same_bytes() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut options = options()?;
    options.deterministic = true;
    options.seed = 42;
    let mut once = |name: &str| -> Result<_, Failed> {
        options.bring_back = Some(folder.path().join(name));
        let ran = ran(&options, &["wobble"])?;
        let file = std::fs::read(folder.path().join(name).join("log"))?;
        Ok((
            ran.outcome.console,
            ran.stdout,
            file,
            ran.outcome.boot_ns,
            ran.outcome.command_start_ns,
        ))
    };
    let (first, second) = (once("first")?, once("second")?);
    assert!(!first.1.is_empty() && !first.2.is_empty());
    assert_eq!(
        String::from_utf8_lossy(&first.1),
        String::from_utf8_lossy(&second.1),
        "standard output"
    );
    assert!(first == second, "console, file or times differ");
    // What is compared must be able to differ: another seed gives other random numbers.
    options.seed = 43;
    options.bring_back = None;
    assert_ne!(ran(&options, &["wobble"])?.stdout, first.1);
    Ok(())
}
