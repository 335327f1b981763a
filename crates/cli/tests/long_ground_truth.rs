// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ground truth loads at their full length and with other seeds: what `explain` says of each, printed and held to its floor.

mod common;

use std::process::Command;

use common::{UNSPIN, ended, repository};
use serde_json::Value;

const LOADS: [&str; 4] = ["lock-heavy", "waiter-preemption", "ipi-heavy", "mixed"];

#[test]
fn explanations_are_right_with_other_seeds() {
    let folder = tempfile::tempdir().expect("a folder");
    for (index, load) in LOADS.iter().enumerate() {
        for seed in [index as u64 + 11, index as u64 + 21] {
            let back = folder.path().join(format!("{load}-{seed}"));
            let scenario = format!("scenarios/ground-truth/{load}.toml");
            let mut line = Command::new(UNSPIN);
            line.args(["testbed", "run", "--deterministic", "--bring-back"])
                .arg(&back)
                .args([
                    "--",
                    "unspin",
                    "vm",
                    "run",
                    &scenario,
                    "--seed",
                    &seed.to_string(),
                ])
                .args(["--record", "/out/rec", "--guest-log", "/out/guest.json"]);
            let run = ended(line.current_dir(repository()));
            assert_eq!(run.status, 0, "{run:#?}");
            let mut line = Command::new(UNSPIN);
            line.arg("ground-truth").arg(back.join("rec"));
            line.arg("--guest-log")
                .arg(back.join("guest.json"))
                .arg("--json");
            let ground_truth = ended(&mut line);
            assert_eq!(ground_truth.status, 0, "{ground_truth:#?}");
            let object: Value = serde_json::from_str(&ground_truth.out).expect("JSON");
            let mut rows = object["rows"].as_array().expect("rows").iter();
            let row = rows
                .rfind(|row| row["table"] == "evaluation")
                .expect("a row");
            eprintln!("{load} {seed}: {row}");
            assert!(row["precision"].as_f64().expect("known") >= 0.85, "{row}");
            assert!(row["coverage"].as_f64().expect("known") >= 0.75, "{row}");
        }
    }
}
