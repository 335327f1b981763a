// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need a real KVM host: a test binary boots the testbed with itself as PID 1, and runs its checks there.
//!
//! For integration tests with `harness = false`: `main` calls [`Checks::enter`] first, and on the host has one test,
//! which calls [`Checks::boot`].

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    process,
};

use crate::{Options, Qemu, cache_from_environment, init_main, run_with};

/// What runs in the testbed.
#[derive(Clone, Copy)]
pub struct Checks {
    /// Names and functions; one that panics has failed, and the others run all the same.
    pub checks: &'static [(&'static str, fn())],
    /// The emulator below them.
    pub qemu: Qemu,
    /// Parameters of `kvm_amd`, as on modprobe's command line; empty: the kernel's own.
    pub kvm_amd: &'static str,
}

impl Checks {
    /// First thing in `main`. As PID 1 of the testbed, or as the command that runs there, it does not return.
    pub fn enter(self) {
        if process::id() == 1 {
            init_main();
        }
        let words: Vec<String> = env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let ["inside", ref names @ ..] = words[..] {
            process::exit(self.inside(names));
        }
    }

    /// Whether tests that need the testbed are to run: `make test` sets UNSPIN_E2E=1, a plain `cargo test` does not.
    pub fn wanted() -> bool {
        env::var_os("UNSPIN_E2E").is_some_and(|value| value == "1")
    }

    /// The checks of those names (none: all), a line each; the exit status.
    fn inside(self, names: &[&str]) -> i32 {
        let (mut status, began) = (0, std::time::Instant::now());
        for (name, check) in self.checks {
            if !names.is_empty() && !names.contains(name) {
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

    /// Names of the checks to run: those that `wanted` lists with spaces between; all of them without it, or when it
    /// names none of these (those of another boot).
    fn chosen(&self, wanted: Option<&str>) -> Vec<&'static str> {
        let all = || self.checks.iter().map(|(name, _)| *name);
        let wanted: Vec<&str> = wanted.unwrap_or_default().split_whitespace().collect();
        let chosen: Vec<&str> = all().filter(|name| wanted.contains(name)).collect();
        if chosen.is_empty() {
            all().collect()
        } else {
            chosen
        }
    }

    /// Boots deterministically and runs these checks inside, where `enter` must know them by name; what they said.
    /// UNSPIN_CHECKS in the environment names fewer; UNSPIN_CHECKS_LIVE=1 also shows on standard error what they say as it
    /// comes, for those that take an hour.
    ///
    /// # Errors
    /// The boot's error, or what the checks said when one failed or did not run.
    pub fn boot(self) -> Result<String, String> {
        self.boot_with(|_| ())
    }

    /// The same with something about the boot changed: more CPUs, files that the checks need.
    ///
    /// # Errors
    /// As `boot`.
    pub fn boot_with(self, change: impl FnOnce(&mut Options)) -> Result<String, String> {
        let mut options =
            Options::new(cache_from_environment().map_err(|error| error.to_string())?);
        options.qemu = self.qemu;
        options.deterministic = true;
        if !self.kvm_amd.is_empty() {
            let parameters = &mut options.module_parameters;
            parameters.insert("kvm_amd".into(), self.kvm_amd.into());
        }
        change(&mut options);
        let names = self.chosen(env::var("UNSPIN_CHECKS").ok().as_deref());
        let words = ["unspin", "inside"].iter().chain(&names);
        let command: Vec<OsString> = words.map(OsString::from).collect();
        let live = env::var_os("UNSPIN_CHECKS_LIVE").is_some_and(|value| value == "1");
        let (mut stdout, mut stderr) = (Kept::new(live), Kept::new(live));
        let outcome = run_with(&options, &command, &mut stdout, &mut stderr);
        let said = String::from_utf8_lossy(&stdout.kept).into_owned();
        let complaints = String::from_utf8_lossy(&stderr.kept);
        match outcome {
            Err(error) => Err(format!("{error}\n{said}{complaints}")),
            Ok(outcome) if outcome.status == 0 && passed(&said) == names.len() => Ok(said),
            Ok(outcome) => Err(format!(
                "exit status {}; the checks said:\n{said}{complaints}",
                outcome.status
            )),
        }
    }
}

/// What comes out of a boot, kept; `live`: shown as well.
struct Kept {
    kept: Vec<u8>,
    live: bool,
}

impl Kept {
    fn new(live: bool) -> Kept {
        let kept = Vec::new();
        Kept { kept, live }
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.live {
            io::stderr().write_all(bytes)?;
        }
        self.kept.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many checks said that they passed; they may say more.
fn passed(said: &str) -> usize {
    said.lines()
        .filter(|line| line.starts_with("passed: "))
        .count()
}
