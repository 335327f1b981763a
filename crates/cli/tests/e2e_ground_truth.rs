// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether `explain` is right: short deterministic runs of the ground truth loads, judged by the guests' own logs.
//!
//! The floors are what was reached (benchmarks/explain) less a margin: a short run has fewer waits. They are not the goals.

mod common;

use std::{path::Path, process::Command};

use common::{UNSPIN, ended, repository};
use serde_json::Value;

/// Runs a load in the testbed and judges what is said of its recording. The row that sums the VMs up.
#[track_caller]
fn judged(folder: &Path, load: &str, flags: &[&str]) -> Value {
    let back = folder.join(load);
    let scenario = format!("scenarios/ground-truth/{load}.toml");
    let mut line = Command::new(UNSPIN);
    line.args(["testbed", "run", "--deterministic", "--bring-back"])
        .arg(&back)
        .args([
            "--", "unspin", "vm", "run", &scenario, "--record", "/out/rec",
        ])
        .args(["--guest-log", "/out/guest.json", "--json"])
        .args(flags);
    let run = ended(line.current_dir(repository()));
    assert_eq!(run.status, 0, "{run:#?}");
    let mut line = Command::new(UNSPIN);
    line.arg("ground-truth")
        .arg(back.join("rec"))
        .arg("--guest-log")
        .arg(back.join("guest.json"))
        .arg("--json");
    let ground_truth = ended(&mut line);
    assert_eq!(ground_truth.status, 0, "{ground_truth:#?}");
    let object: Value = serde_json::from_str(&ground_truth.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows");
    let mut rows = rows.iter().filter(|row| row["table"] == "evaluation");
    rows.next_back().expect("an evaluation").clone()
}

#[track_caller]
fn reaches(row: &Value, precision: f64, coverage: f64, error_percent: f64) {
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
    assert!(number("waits") >= 150.0, "too few waits: {row}");
    assert!(number("precision") >= precision, "{row}");
    assert!(number("coverage") >= coverage, "{row}");
    assert!(number("spin_error_percent").abs() <= error_percent, "{row}");
    // No class exceeds half by more than chance, so guessing is no way.
    assert!(number("always_majority") <= 0.6, "{row}");
}

#[test]
fn causes_of_locks_and_calls_are_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let mixed = judged(folder.path(), "mixed", &["--duration", "250ms"]);
    reaches(&mixed, 0.88, 0.80, 5.0);
}

#[test]
fn causes_of_holders_and_next_waiters_are_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let locks = judged(folder.path(), "lock-heavy", &["--duration", "300ms"]);
    reaches(&locks, 0.88, 0.85, 5.0);
}
