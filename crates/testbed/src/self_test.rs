// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need a real KVM host: a test binary boots the testbed with itself as PID 1, and runs its checks there.
//!
//! A check registers itself where it is written, for a boot: `check!(STEERER: it_comes_and_goes);` beside the function. An
//! integration test with `harness = false` calls [`enter`] first thing in `main`, and has a test for each boot, which calls
//! [`Checks::boot`].

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    process,
};

use crate::{Options, Qemu, cache_from_environment, init_main, run_with};

/// What runs in a boot of the testbed; one that panics has failed, and the others run all the same.
pub struct Check {
    /// By which it is chosen.
    pub name: &'static str,
    /// In which boot it runs.
    pub boot: &'static str,
    /// The check itself.
    pub run: fn(),
    /// Where it stands, file and line: checks run in this order.
    pub place: (&'static str, u32),
}

inventory::collect!(Check);

/// Registers a check for a boot: `check!(BOOT: function);`, or `check!(BOOT: "name" => function);`.
#[macro_export]
macro_rules! check {
    ($boot:ident: $run:ident) => {
        $crate::check!($boot: stringify!($run) => $run);
    };
    ($boot:ident: $name:expr => $run:expr) => {
        $crate::inventory::submit! {
            $crate::self_test::Check {
                name: $name,
                boot: stringify!($boot),
                run: $run,
                place: (file!(), line!()),
            }
        }
    };
}

/// Every check of this binary, in order.
fn registered() -> Vec<&'static Check> {
    let mut all: Vec<&Check> = inventory::iter::<Check>.into_iter().collect();
    all.sort_by_key(|check| check.place);
    all
}

/// Names of a boot's checks, in the order in which they run.
pub fn names_of(boot: &str) -> Vec<&'static str> {
    let all = registered().into_iter();
    let of_boot = all.filter(|check| check.boot == boot);
    of_boot.map(|check| check.name).collect()
}

/// First thing in `main`. As PID 1 of the testbed, or as the command that runs there, it does not return. On the host it ends
/// with status 2 where UNSPIN_CHECKS names a check that is none of `boots`, and with a list of them where the only argument is
/// `--list-checks`.
///
/// # Panics
/// When a check is registered for a boot that is none of `boots` nor of `others`, which another binary boots; or two checks
/// have one name.
pub fn enter(boots: &[&str], others: &[&str]) {
    if process::id() == 1 {
        init_main();
    }
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["inside", ref names @ ..] = words[..] {
        process::exit(inside(names));
    }
    let all = registered();
    for (place, check) in all.iter().enumerate() {
        let Check { name, boot, .. } = check;
        assert!(
            boots.contains(boot) || others.contains(boot),
            "{name} is registered for the boot {boot}, which nobody boots"
        );
        let twice = all[..place].iter().any(|other| other.name == *name);
        assert!(!twice, "two checks are called {name}");
    }
    let names: Vec<&str> = boots.iter().flat_map(|boot| names_of(boot)).collect();
    if words == ["--list-checks"] {
        for name in names {
            println!("{name}");
        }
        process::exit(0);
    }
    let wanted = wanted();
    let unknown = wanted.iter().find(|name| !names.contains(&name.as_str()));
    if let Some(unknown) = unknown {
        eprintln!(
            "there is no check `{unknown}` here{}",
            nearest(unknown, &names)
        );
        process::exit(2);
    }
}

/// "; near it: a, b, c".
fn nearest(unknown: &str, names: &[&str]) -> String {
    let mut near: Vec<(usize, &str)> = names
        .iter()
        .map(|name| (strsim::osa_distance(unknown, name), *name))
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.iter().take(3).map(|(_, name)| *name).collect();
    format!("; near it: {}", near.join(", "))
}

/// The checks that UNSPIN_CHECKS names, with spaces between; none: all.
fn wanted() -> Vec<String> {
    let wanted = env::var("UNSPIN_CHECKS").unwrap_or_default();
    wanted.split_whitespace().map(str::to_owned).collect()
}

/// The checks of those names, a line each; the exit status.
fn inside(names: &[&str]) -> i32 {
    let (mut status, began) = (0, std::time::Instant::now());
    for Check { name, run, .. } in registered() {
        if !names.contains(name) {
            continue;
        }
        match std::panic::catch_unwind(run) {
            Ok(()) => println!("passed: {name}, at {} ms", began.elapsed().as_millis()),
            Err(_) => {
                println!("FAILED: {name} (standard error says why)");
                status = 1;
            }
        }
    }
    status
}

/// Says that what a test needs is not there, and why: on standard error, and in the file that UNSPIN_NOT_TESTED names
/// (`cargo xtask long`), so that it does not count as passed. The test then returns.
pub fn not_tested(why: &str) {
    eprintln!("not tested: {why}");
    if let Some(file) = env::var_os("UNSPIN_NOT_TESTED") {
        std::fs::write(file, why).expect("whoever set it can be told");
    }
}

/// A boot of checks.
#[derive(Clone, Copy)]
pub struct Checks {
    /// Whose checks.
    pub boot: &'static str,
    /// Only this one of them, or of any boot.
    pub only: Option<&'static str>,
    /// The emulator below them.
    pub qemu: Qemu,
    /// Parameters of `kvm_amd`, as on modprobe's command line; empty: the kernel's own.
    pub kvm_amd: &'static str,
}

impl Checks {
    /// Whether tests that need the testbed are to run: `make test` sets UNSPIN_E2E=1, a plain `cargo test` does not.
    pub fn wanted() -> bool {
        env::var_os("UNSPIN_E2E").is_some_and(|value| value == "1")
    }

    /// Names of the checks to run.
    fn chosen(&self) -> Vec<&'static str> {
        let mut names = match self.only {
            Some(name) => vec![name],
            None => names_of(self.boot),
        };
        let wanted = wanted();
        names.retain(|name| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
        names
    }

    /// Boots deterministically and runs these checks inside; what they said. UNSPIN_CHECKS in the environment names fewer: a
    /// boot that has none of them does not happen. UNSPIN_CHECKS_LIVE=1 also shows on standard error what they say as it
    /// comes, for those that take an hour.
    ///
    /// # Errors
    /// The boot's error, or what the checks said when one failed or did not run; a boot without a check.
    pub fn boot(self) -> Result<String, String> {
        self.boot_with(|_| ())
    }

    /// The same with something about the boot changed: more CPUs, files that the checks need.
    ///
    /// # Errors
    /// As `boot`.
    pub fn boot_with(self, change: impl FnOnce(&mut Options)) -> Result<String, String> {
        let names = self.chosen();
        if names.is_empty() && !wanted().is_empty() {
            return Ok(format!("{}: none of its checks is wanted\n", self.boot));
        }
        if names.is_empty() {
            return Err(format!("no check is registered for the boot {}", self.boot));
        }
        let mut options =
            Options::new(cache_from_environment().map_err(|error| error.to_string())?);
        options.qemu = self.qemu;
        options.deterministic = true;
        options.attempts = 1; // the same boot again: a fault that comes and goes is a fault
        if !self.kvm_amd.is_empty() {
            let parameters = &mut options.module_parameters;
            parameters.insert("kvm_amd".into(), self.kvm_amd.into());
        }
        change(&mut options);
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
