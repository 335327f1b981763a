// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask long`: the long checks, one after another, and what became of each at its last run: tests/long/results.tsv has
//! a row for every one of them, also for those that never ran.

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context, ensure};

use crate::{
    check::{self, Program},
    repository,
    results::Results,
};

const HEAD: &str =
    "# SPDX-License-Identifier: MIT OR Apache-2.0\n# Each long check's last run: `make test-long`.";
const RESULTS: &str = "tests/long/results.tsv";
const NEVER: &str = "never-run";

/// Runs those whose name contains one of `names` (all, if there is none) and that have not passed at this commit yet: what was
/// interrupted goes on.
///
/// # Errors
/// A name that is in none of them; a check that failed, once all have run.
pub fn run(root: &Path, names: &[String]) -> anyhow::Result<()> {
    let all = checks(root)?;
    for name in names {
        let known = all.iter().any(|(check, _)| check.contains(name.as_str()));
        ensure!(known, "no long check contains {name:?}");
    }
    let commit = repository::commit_but_for(root, RESULTS)?;
    let mut results = Results::read(root.join(RESULTS), HEAD)?;
    results.retain(|name| all.iter().any(|(check, _)| check == name));
    for (check, _) in &all {
        if results.outcome(check).is_none() {
            results.set(check, NEVER, 0, "-")?;
        }
    }
    let wanted =
        |check: &str| names.is_empty() || names.iter().any(|name| check.contains(name.as_str()));
    let (mut passed, mut failed) = (0, 0);
    for (check, program) in all.iter().filter(|(check, _)| wanted(check)) {
        if results.passed_at(check, &commit) {
            passed += 1;
            continue;
        }
        let begin = Instant::now();
        let outcome = if passes(check, program)? {
            "passed"
        } else {
            "FAILED"
        };
        eprintln!("{outcome} {check}, {} s", begin.elapsed().as_secs());
        results.set(check, outcome, begin.elapsed().as_secs(), &commit)?;
        match outcome {
            "passed" => passed += 1,
            _ => failed += 1,
        }
    }
    println!("{passed} passed, {failed} failed");
    ensure!(failed == 0, "{failed} long checks failed");
    Ok(())
}

/// Every test of the programs called long*: `PROGRAM::TEST`.
fn checks(root: &Path) -> anyhow::Result<Vec<(String, Program)>> {
    let mut all = Vec::new();
    for program in check::programs(root)? {
        if program.name.starts_with("long") {
            let tests = check::tests_of(&program)?;
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

fn passes(check: &str, program: &Program) -> anyhow::Result<bool> {
    let test = check
        .strip_prefix(&format!("{}::", program.name))
        .unwrap_or(check);
    let status = Command::new(&program.binary)
        .args([test, "--exact", "--include-ignored"])
        .current_dir(&program.folder)
        .env("UNSPIN_E2E", "1")
        .status()
        .context("a test program does not run")?;
    Ok(status.success())
}
