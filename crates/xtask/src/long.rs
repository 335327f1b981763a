// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask long`: the long checks, one after another, and what became of each at its last run: tests/long/results.tsv has
//! a row for every one of them, also for those that never ran.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::{
    check::{self, Program},
    limit, repository,
    results::{self, NOT_TESTED, Results},
    sitting::Sitting,
};

const HEAD: &str =
    "# SPDX-License-Identifier: MIT OR Apache-2.0\n# Each long check's last run: `make test-long`.";

/// A long check: `PROGRAM::TEST`, and the program.
type Check = (String, Program);

/// Runs those whose name contains one of the sitting's (all, if there is none) and that have not passed at this commit yet. One
/// that takes longer than `each` is ended and has timed out; one that is ended by the sitting's end keeps its row.
///
/// # Errors
/// A name that is in none of them; a check that failed, once all have run.
pub fn run(root: &Path, sitting: &Sitting, each: Duration) -> anyhow::Result<()> {
    let all = checks(&check::programs(root)?)?;
    let commit = repository::commit_but_for(root, &results::FILES)?;
    let mut results = Results::read(root.join(results::LONG), HEAD)?;
    run_checks(all, &mut results, &commit, sitting, each)
}

fn run_checks(
    all: Vec<Check>,
    results: &mut Results,
    commit: &str,
    sitting: &Sitting,
    each: Duration,
) -> anyhow::Result<()> {
    let began = Instant::now();
    for name in &sitting.names {
        let known = all.iter().any(|(check, _)| check.contains(name.as_str()));
        ensure!(known, "no long check contains {name:?}");
    }
    results.list(all.iter().map(|(check, _)| check.as_str()))?;
    let mut asked = all;
    asked.retain(|(check, _)| {
        let mut names = sitting.names.iter();
        sitting.names.is_empty() || names.any(|name| check.contains(name.as_str()))
    });
    let many = asked.len();
    let due = sitting.due(asked, |(check, _)| check, results, commit);
    let (mut passed, mut failed, mut untested, mut left) = (many - due.len(), 0, 0, due.len());
    for (check, program) in &due {
        let until = sitting.left(began).unwrap_or(each);
        let limit = until.min(each);
        // A sitting's last second starts nothing.
        if limit < Duration::from_secs(1) {
            break;
        }
        let begin = Instant::now();
        let outcome = match ended(check, program, limit)? {
            Ended::Passed => "passed",
            Ended::NotTested(why) => {
                eprintln!("{why}");
                NOT_TESTED
            }
            Ended::Failed => "FAILED",
            Ended::AtTheLimit if until < each => break,
            Ended::AtTheLimit => "timed-out",
        };
        left -= 1;
        eprintln!("{outcome} {check}, {} s", begin.elapsed().as_secs());
        results.set(check, outcome, begin.elapsed().as_secs(), commit)?;
        match outcome {
            "passed" => passed += 1,
            NOT_TESTED => untested += 1,
            _ => failed += 1,
        }
    }
    if left > 0 {
        println!("{left} left for another sitting");
    }
    if untested > 0 {
        println!("{untested} not tested, for want of what they need");
    }
    println!("{passed} passed, {failed} failed");
    ensure!(failed == 0, "{failed} long checks failed");
    Ok(())
}

/// Every test of the programs called long*.
fn checks(programs: &[Program]) -> anyhow::Result<Vec<Check>> {
    let mut all = Vec::new();
    for program in programs {
        if program.name.starts_with("long") {
            let tests = check::tests_of(program)?;
            all.extend(
                tests
                    .into_iter()
                    .map(|test| (format!("{}::{test}", program.name), program.clone())),
            );
        }
    }
    all.sort();
    Ok(all)
}

/// What became of a check.
enum Ended {
    Passed,
    /// What it needs is not there, and why.
    NotTested(String),
    Failed,
    /// It was ended with all that it had started, as the limit was over.
    AtTheLimit,
}

fn ended(check: &str, program: &Program, time: Duration) -> anyhow::Result<Ended> {
    let test = check
        .strip_prefix(&format!("{}::", program.name))
        .unwrap_or(check);
    let not_tested = tempfile::NamedTempFile::new()?;
    let status = Command::new(limit::PROGRAM)
        .args(limit::arguments(time))
        .arg(&program.binary)
        .args([test, "--exact", "--include-ignored"])
        .current_dir(&program.folder)
        .env("UNSPIN_E2E", "1")
        .env("UNSPIN_NOT_TESTED", not_tested.path())
        .status()
        .context("setpriv does not run")?;
    let why = fs::read_to_string(not_tested.path())?;
    // 124: ended by the signal; 137 or a signal: it had to be killed.
    Ok(match status.code() {
        Some(124 | 137) | None => Ended::AtTheLimit,
        Some(0) if why.is_empty() => Ended::Passed,
        Some(0) => Ended::NotTested(why),
        Some(_) => Ended::Failed,
    })
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, path::PathBuf};

    use super::*;

    /// A test program that lists one test and then does what the script says.
    fn program(folder: &Path, name: &str, script: &str) -> Program {
        let binary = folder.join(name);
        let text =
            format!("#!/bin/sh\n[ \"$1\" != --list ] || {{ echo 'a: test'; exit; }}\n{script}\n");
        fs::write(&binary, text).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        Program {
            name: name.to_owned(),
            package: String::new(),
            binary,
            folder: folder.to_owned(),
            in_testbed: false,
        }
    }

    struct Room {
        folder: tempfile::TempDir,
        programs: Vec<Program>,
    }

    impl Room {
        fn new(scripts: &[(&str, &str)]) -> Room {
            let folder = tempfile::tempdir().unwrap();
            let programs = scripts
                .iter()
                .map(|(name, script)| program(folder.path(), name, script))
                .collect();
            Room { folder, programs }
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join(results::LONG)
        }

        fn results(&self) -> Results {
            fs::create_dir_all(self.file().parent().unwrap()).unwrap();
            Results::read(self.file(), HEAD).unwrap()
        }

        fn run(&self, sitting: &Sitting, each: u64) -> anyhow::Result<()> {
            let all = checks(&self.programs)?;
            let each = Duration::from_secs(each);
            run_checks(all, &mut self.results(), "c1", sitting, each)
        }
    }

    #[test]
    fn each_check_gets_a_row_and_one_that_hangs_is_ended() {
        let good = "echo ran >>good; exit 0";
        let room = Room::new(&[
            ("long_bad", "exit 1"),
            ("long_good", good),
            ("long_hangs", "sleep 60"),
            ("long_lacks", "echo no modules >\"$UNSPIN_NOT_TESTED\""),
            ("other", "exit 1"),
        ]);
        assert!(room.run(&Sitting::default(), 1).is_err());
        let results = room.results();
        assert_eq!(results.outcome("long_good::a"), Some("passed"));
        assert_eq!(results.outcome("long_bad::a"), Some("FAILED"));
        assert_eq!(results.outcome("long_hangs::a"), Some("timed-out"));
        assert_eq!(results.outcome("long_lacks::a"), Some(NOT_TESTED));
        assert_eq!(results.outcome("other::a"), None);
        // What has passed at this commit is not run again.
        let only = Sitting {
            names: vec!["good".to_owned()],
            ..Sitting::default()
        };
        room.run(&only, 1).unwrap();
        let ran = fs::read_to_string(room.folder.path().join("good")).unwrap();
        assert_eq!(ran.lines().count(), 1);
    }

    #[test]
    fn the_sittings_end_changes_no_row() {
        let room = Room::new(&[("long_hangs", "sleep 60")]);
        let sitting = Sitting {
            limit: Some(Duration::from_secs(2)),
            ..Sitting::default()
        };
        let begin = Instant::now();
        room.run(&sitting, 50).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert_eq!(
            room.results().outcome("long_hangs::a"),
            Some(results::NEVER)
        );
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let room = Room::new(&[("long_good", "exit 0")]);
        let sitting = Sitting {
            names: vec!["godo".to_owned()],
            ..Sitting::default()
        };
        assert!(room.run(&sitting, 1).is_err());
    }
}
