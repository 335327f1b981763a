// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long`: boots again and again, as what hangs once in forty boots is not seen by one; and a hundred VMs in one.

mod common;

use std::process::Command;

use common::{Ended, ended, repository};

/// Boots of each kind; UNSPIN_LONG_BOOTS overrides it.
const BOOTS: usize = 40;

fn boots() -> usize {
    let given = std::env::var("UNSPIN_LONG_BOOTS").ok();
    given.map_or(BOOTS, |text| {
        text.parse().expect("UNSPIN_LONG_BOOTS is a number")
    })
}

fn smoke(flags: &[&str]) -> Ended {
    vms(flags, &["scenarios/smoke.toml"])
}

/// `unspin vm run WORDS --json` in a testbed with these flags.
fn vms(flags: &[&str], words: &[&str]) -> Ended {
    let mut line = Command::new(common::UNSPIN);
    line.args(["testbed", "run"]).args(flags);
    line.args(["--", "unspin", "vm", "run", "--json"])
        .args(words);
    let ended = ended(line.current_dir(repository()));
    assert_eq!(ended.status, 0, "{ended:#?}");
    ended
}

#[test]
fn deterministic_boots_are_all_the_same() {
    let first = smoke(&["--deterministic"]);
    for boot in 1..boots() {
        let again = smoke(&["--deterministic"]);
        assert!(
            again.out == first.out,
            "boot {boot} differs:\n{}\n{}",
            first.out,
            again.out
        );
    }
}

#[test]
fn timed_boots_all_do_their_work() {
    for _ in 0..boots() {
        smoke(&[]);
    }
}

/// In virtual time (2 ns an instruction), so that what else this machine does is not in it.
#[test]
fn a_hundred_vms_start_within_three_seconds() {
    let ended = vms(
        &["--deterministic"],
        &["scenarios/hundred.toml", "--duration=300ms"],
    );
    let run = &rows(&ended.out, "run")[0];
    assert_eq!(run["vms"], 100);
    assert!(
        run["all_started_ns"].as_u64() < Some(3_000_000_000),
        "{run}"
    );
    for row in rows(&ended.out, "vm") {
        assert!(row["operations_per_second"].as_f64() > Some(0.0), "{row}");
        assert!(row["resident_bytes"].as_u64() <= Some(16 << 20), "{row}");
    }
}

fn rows(out: &str, table: &str) -> Vec<serde_json::Value> {
    let object: serde_json::Value = serde_json::from_str(out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows").clone();
    rows.into_iter()
        .filter(|row| row["table"] == table)
        .collect()
}
