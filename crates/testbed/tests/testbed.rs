// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots the testbed with this test binary as PID 1 and as the command that runs there.
//!
//! Needs what `make setup` puts into the cache: the tests are ignored unless UNSPIN_E2E=1, which `make test` sets.

use std::ffi::OsString;

use libtest_mimic::{Arguments, Failed, Trial};
use unspin_testbed::{Error, Options, Outcome, Qemu, cache_from_environment, init_main, run_with};

#[path = "testbed/fails.rs"]
mod fails;
#[path = "testbed/inside.rs"]
mod inside;
#[path = "testbed/intel.rs"]
mod intel;
#[path = "testbed/works.rs"]
mod works;

fn main() {
    if std::process::id() == 1 {
        init_main();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "inside") {
        inside::main(&words[1..]);
    }
    if words.first().is_some_and(|word| word == "run-until-killed") {
        fails::run_until_killed();
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1); // Each boot wants both cores of a small machine.
    let wanted = std::env::var_os("UNSPIN_E2E").is_some_and(|value| value == "1");
    libtest_mimic::run(&arguments, trials(wanted)).exit();
}

/// Every test under its function's name.
macro_rules! trials {
    ($wanted:expr, $($module:ident::$test:ident),+ $(,)?) => {
        vec![$(Trial::test(stringify!($test), $module::$test).with_ignored_flag(!$wanted)),+]
    };
}

fn trials(wanted: bool) -> Vec<Trial> {
    trials![
        wanted,
        works::output_files_and_status_come_back,
        works::kvm_and_every_file_system_are_there,
        works::the_clock_runs_at_the_hosts_pace,
        works::module_parameters_arrive,
        works::the_kernel_sees_the_topology,
        works::a_command_that_is_not_there_gives_127,
        works::a_signal_gives_128_and_its_number,
        works::what_the_command_left_running_ends_with_it,
        works::two_deterministic_runs_give_the_same_bytes,
        fails::a_panic_is_tried_again_and_shown,
        fails::a_command_over_its_limit_is_ended,
        fails::the_emulator_ends_with_its_owner,
        fails::more_output_than_fits_is_an_error,
        intel::intel_files_and_output_come_back_whole,
        intel::intel_runs_are_the_same_and_kvm_is_there,
        intel::an_intel_panic_is_seen,
    ]
}

struct Ran {
    outcome: Outcome,
    stdout: Vec<u8>,
    stderr: String,
}

fn options() -> Result<Options, Failed> {
    let mut options = Options::new(cache_from_environment()?);
    options.qemu = Qemu::Stock;
    Ok(options)
}

fn command(words: &[&str]) -> Vec<OsString> {
    ["unspin", "inside"]
        .iter()
        .chain(words)
        .map(OsString::from)
        .collect()
}

fn ran(options: &Options, words: &[&str]) -> Result<Ran, Failed> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let result = run_with(options, &command(words), &mut stdout, &mut stderr);
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    let outcome = result.map_err(|error| format!("{error}\nstandard error was:\n{stderr}"))?;
    Ok(Ran {
        outcome,
        stdout,
        stderr,
    })
}

fn refused(options: &Options, words: &[&str]) -> Result<(Error, Vec<u8>, String), Failed> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    match run_with(options, &command(words), &mut stdout, &mut stderr) {
        Ok(outcome) => Err(format!("it should have failed: {outcome:?}").into()),
        Err(error) => Ok((error, stdout, String::from_utf8_lossy(&stderr).into_owned())),
    }
}
