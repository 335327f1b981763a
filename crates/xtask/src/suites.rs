// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask test`: the suites of `make test`, one after another; the last line is their sum, "N passed, N failed".
//!
//! Tests in Rust are run by cargo-nextest (setup/nextest, .config/nextest.toml), which counts them in a JUnit file; scripts say
//! the same line as we do, last. A suite that ends badly without a failed test (it does not compile, it was killed) is one
//! failure, and so is one that ran nothing. What failed in Rust is said once more at the end.

use std::{
    cell::RefCell,
    fmt::{self, Display, Formatter},
    fs,
    io::{BufRead, BufReader},
    iter::Sum,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail, ensure};
use serde::Serialize;

use crate::{failures, mutants};

/// What the last run said, for benchmarks/suites.
const ROWS: &str = "target/suites.jsonl";

/// How many checks passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |sum, count| Count {
            passed: sum.passed + count.passed,
            failed: sum.failed + count.failed,
        })
    }
}

impl Count {
    /// One check.
    fn of_one(passed: bool) -> Count {
        Count {
            passed: u64::from(passed),
            failed: u64::from(!passed),
        }
    }

    /// With what the command's end says besides: one failure more where it failed without any, or nothing ran.
    fn ended(self, successfully: bool) -> Count {
        let silent = !successfully && self.failed == 0;
        let nothing = self.passed == 0 && self.failed == 0;
        Count {
            failed: self.failed.max(u64::from(silent || nothing)),
            ..self
        }
    }
}

/// A suite that has run, as benchmarks/suites keeps it.
#[derive(Debug, Serialize)]
struct Row {
    suite: &'static str,
    passed: u64,
    failed: u64,
    seconds: u64,
}

impl Display for Row {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (suite, passed, failed) = (self.suite, self.passed, self.failed);
        let seconds = self.seconds;
        write!(
            formatter,
            "suite {suite}: {passed} passed, {failed} failed, {seconds} s"
        )
    }
}

/// Writes target/suites.jsonl: a row for each suite of this run.
fn write_rows(root: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let lines: Vec<String> = rows
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    let path = root.join(ROWS);
    fs::write(&path, lines.join("\n") + "\n").with_context(|| format!("cannot write {ROWS}"))
}

/// What a suite consists of.
enum Part {
    /// A script that ends with "N passed, N failed".
    Script(&'static str),
    /// A profile of .config/nextest.toml.
    Nextest(&'static str),
    /// The examples in documentation, which nextest does not run: one check.
    Documentation,
    /// That each seeded bug's test is there: one check.
    SeededBugs,
    /// The table of boots that the suite has made.
    Boots,
}

/// In this order: what fails soonest comes first.
const SUITES: [(&str, &[Part]); 5] = [
    ("lint", &[Part::Script("setup/lint"), Part::SeededBugs]),
    ("unit", &[Part::Nextest("default"), Part::Documentation]),
    ("python", &[Part::Script("setup/test-python")]),
    ("setup", &[Part::Script("tests/setup/run")]),
    ("testbed", &[Part::Nextest("testbed"), Part::Boots]),
];

/// Runs the suites of those names, all of them when there is no name. `nextest`: the program cargo-nextest.
///
/// # Errors
/// No such suite; a check that failed, once all have run.
pub fn run(root: &Path, nextest: &Path, names: &[String]) -> anyhow::Result<()> {
    let known: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            bail!(
                "no suite is called {name:?}; there are: {}",
                known.join(" ")
            );
        }
    }
    let runner = Runner {
        root,
        nextest,
        failures: RefCell::default(),
    };
    let began = Instant::now();
    let mut rows = Vec::new();
    for (name, parts) in SUITES {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        println!("suite {name}");
        rows.push(runner.suite(parts, name)?);
    }
    println!();
    for row in &rows {
        println!("{row}");
    }
    for line in runner.failures.borrow().iter() {
        println!("{line}");
    }
    println!("all suites: {} s", began.elapsed().as_secs());
    write_rows(root, &rows)?;
    let counts = rows.iter().map(|row| Count {
        passed: row.passed,
        failed: row.failed,
    });
    let sum: Count = counts.sum();
    println!("{} passed, {} failed", sum.passed, sum.failed);
    ensure!(sum.failed == 0, "{} checks failed", sum.failed);
    Ok(())
}

/// Where and by what tests are run.
struct Runner<'a> {
    root: &'a Path,
    nextest: &'a Path,
    /// Lines that say what failed and why.
    failures: RefCell<Vec<String>>,
}

impl Runner<'_> {
    fn suite(&self, parts: &[Part], name: &'static str) -> anyhow::Result<Row> {
        let began = Instant::now();
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let counts: Vec<Count> = parts
            .iter()
            .map(|part| self.part(part, since))
            .collect::<anyhow::Result<_>>()?;
        let Count { passed, failed } = counts.into_iter().sum();
        Ok(Row {
            suite: name,
            passed,
            failed,
            seconds: began.elapsed().as_secs(),
        })
    }

    fn part(&self, part: &Part, since: u64) -> anyhow::Result<Count> {
        match part {
            Part::Script(script) => self.script(script),
            Part::Nextest(profile) => self.profile(profile),
            Part::Documentation => {
                let mut command = self.command(Path::new("cargo"));
                command.args(["test", "--workspace", "--locked", "--quiet", "--doc"]);
                let succeeded = command.status().context("cargo does not run")?.success();
                Ok(Count::of_one(succeeded))
            }
            Part::SeededBugs => {
                let checked = mutants::check_tests(self.root);
                if let Err(error) = &checked {
                    println!("{error:#}");
                }
                Ok(Count::of_one(checked.is_ok()))
            }
            Part::Boots => {
                let unspin = self.root.join("unspin");
                let since = since.to_string();
                let mut command = self.command(&unspin);
                command.args(["testbed", "boots", "--since", &since]);
                let succeeded = command.status().context("unspin does not run")?.success();
                // The table is no check; that it cannot be had is a failure.
                Ok(Count {
                    passed: 0,
                    failed: u64::from(!succeeded),
                })
            }
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root).stdin(Stdio::null());
        command
    }

    /// A script's count: its last line.
    fn script(&self, script: &str) -> anyhow::Result<Count> {
        let mut child = self
            .command(&self.root.join(script))
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{script} does not run"))?;
        let mut count = Count::default();
        let output = child.stdout.take().context("its output is a pipe")?;
        for line in BufReader::new(output).lines() {
            let line = line?;
            match count_of(&line) {
                Some(found) => count = found,
                None => println!("{line}"),
            }
        }
        Ok(count.ended(child.wait()?.success()))
    }

    /// Runs a profile of nextest; its count is that of the JUnit file that it writes.
    fn profile(&self, profile: &str) -> anyhow::Result<Count> {
        let junit = target(self.root).join(format!("nextest/{profile}/junit.xml"));
        // One of an earlier run must not be read for this one's.
        let _ = fs::remove_file(&junit);
        let mut command = self.command(self.nextest);
        command.args(["nextest", "run", "--workspace", "--locked"]);
        command.args(["--profile", profile, "--no-tests", "fail"]);
        if profile == "testbed" {
            command.env("UNSPIN_E2E", "1");
        }
        let status = command.status();
        let status = status.with_context(|| format!("{} does not run", self.nextest.display()))?;
        let count = match fs::read_to_string(&junit) {
            Ok(text) => {
                let junit = || junit.display().to_string();
                let failed = failures::of_junit(&text).with_context(junit)?;
                self.failures.borrow_mut().extend(failed);
                counted(&text).with_context(junit)?
            }
            Err(_) => Count::default(),
        };
        Ok(count.ended(status.success()))
    }
}

/// The folder that cargo builds in.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// "N passed, N failed", alone on a line.
fn count_of(line: &str) -> Option<Count> {
    let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some(Count {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
    })
}

/// What a JUnit file counts.
fn counted(junit: &str) -> anyhow::Result<Count> {
    let document = roxmltree::Document::parse(junit)?;
    let root = document.root_element();
    ensure!(root.has_tag_name("testsuites"), "no JUnit file");
    let number = |name: &str| -> anyhow::Result<u64> {
        let text = root.attribute(name).with_context(|| format!("no {name}"))?;
        Ok(text.parse()?)
    };
    let failed = number("failures")? + number("errors")?;
    let passed = number("tests")?
        .checked_sub(failed)
        .context("more failures than tests")?;
    Ok(Count { passed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn count(passed: u64, failed: u64) -> Count {
        Count { passed, failed }
    }

    #[test]
    fn a_scripts_last_line_is_its_count() {
        assert_eq!(count_of("3 passed, 0 failed"), Some(count(3, 0)));
        assert_eq!(count_of("not 4 passed, 0 failed"), None);
        assert_eq!(count_of("4 passed, 0 failed, 1 skipped"), None);
        assert_eq!(count_of(""), None);
    }

    #[test]
    fn a_bad_end_without_a_failed_test_is_one_failure() {
        assert_eq!(count(3, 0).ended(true), count(3, 0));
        assert_eq!(count(3, 0).ended(false), count(3, 1));
        assert_eq!(count(3, 2).ended(false), count(3, 2));
        assert_eq!(count(3, 2).ended(true), count(3, 2), "it says so itself");
        assert_eq!(count(0, 0).ended(true), count(0, 1), "nothing ran");
    }

    #[test]
    fn junit_counts_errors_as_failures() {
        let text = r#"<?xml version="1.0"?><testsuites name="x" tests="7" failures="1" errors="2"><testsuite name="a"/></testsuites>"#;
        assert_eq!(counted(text).unwrap(), count(4, 3));
        for wrong in [
            "",
            "<testsuites/>",
            r#"<other tests="1" failures="0" errors="0"/>"#,
            r#"<testsuites tests="1" failures="2" errors="0"/>"#,
        ] {
            assert!(counted(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn scripts_are_run_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let runner = Runner {
            root: folder.path(),
            nextest: Path::new("/nonexistent"),
            failures: RefCell::default(),
        };
        let script = |text: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join("script");
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            runner.script("script").unwrap()
        };
        assert_eq!(script("echo '5 passed, 0 failed'"), count(5, 0));
        assert_eq!(script("echo '5 passed, 0 failed'; exit 1"), count(5, 1));
        assert_eq!(script("echo '5 passed, 2 failed'; exit 1"), count(5, 2));
        assert_eq!(script("true"), count(0, 1));
        assert!(runner.script("absent").is_err());
        assert!(runner.profile("default").is_err());
    }

    #[test]
    fn an_unknown_suite_is_refused() {
        let names = ["unti".to_owned()];
        let error = run(Path::new("."), Path::new("x"), &names).unwrap_err();
        assert!(
            error.to_string().contains("lint unit python setup testbed"),
            "{error}"
        );
    }
}
