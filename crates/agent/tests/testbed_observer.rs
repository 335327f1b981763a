// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes real VMs: boots the testbed with this test binary as PID 1 and runs every check of `observer/checks.rs` in
//! one boot, on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

use std::{env, process};

use libtest_mimic::{Arguments, Failed, Trial};
use unspin_testbed::{Options, Qemu, cache_from_environment, init_main, run_with};

#[path = "observer/checks.rs"]
mod checks;
#[path = "observer/join.rs"]
mod join;
#[path = "observer/losses.rs"]
mod losses;
#[path = "observer/vms.rs"]
mod vms;

fn main() {
    if process::id() == 1 {
        init_main();
    }
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["inside", ref names @ ..] => process::exit(inside(names)),
        ["attach"] => checks::attach_and_say(),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let wanted = env::var_os("UNSPIN_E2E").is_some_and(|value| value == "1");
    let boot = Trial::test("every_check_passes_in_the_testbed", in_the_testbed);
    libtest_mimic::run(&arguments, vec![boot.with_ignored_flag(!wanted)]).exit();
}

fn in_the_testbed() -> Result<(), Failed> {
    let mut options = Options::new(cache_from_environment()?);
    options.qemu = Qemu::Stock;
    options.deterministic = true;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let command = ["unspin".into(), "inside".into()];
    let outcome = run_with(&options, &command, &mut stdout, &mut stderr)?;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    if outcome.status != 0 || stdout.lines().count() != checks::ALL.len() {
        let status = outcome.status;
        return Err(format!("exit status {status}; the checks said:\n{stdout}\n{stderr}").into());
    }
    print!("{stdout}");
    Ok(())
}

/// Runs the checks of those names (none: all), one line each; a panic of one leaves the others.
fn inside(names: &[&str]) -> i32 {
    let (mut status, began) = (0, std::time::Instant::now());
    for (name, check) in checks::ALL {
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        match std::panic::catch_unwind(check) {
            Ok(()) => println!("passed: {name}, at {} ms", began.elapsed().as_millis()),
            Err(_) => {
                println!("FAILED: {name} (standard error says why)");
                status = 1;
            }
        }
    }
    status
}
