// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long`: boots again and again. What hangs once in forty boots is not seen by one.

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
    let mut line = Command::new(common::UNSPIN);
    line.args(["testbed", "run"]).args(flags);
    line.args([
        "--",
        "unspin",
        "vm",
        "run",
        "scenarios/smoke.toml",
        "--json",
    ]);
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
