// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user policy, from its first line to a kernel that runs it: written, compiled outside, loaded in the
//! testbed with no change to the tool, and taken again from its log. Needs what `make setup` puts into the cache.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use common::{Ended, ended, repository, unspin};
use serde_json::Value;

/// Runs `unspin testbed run --deterministic FLAGS -- unspin steer COMMAND` in the repository.
fn steer(flags: &[&str], command: &[&str]) -> Ended {
    let mut line = Command::new(common::UNSPIN);
    line.args(["testbed", "run", "--deterministic"])
        .args(flags)
        .args(["--", "unspin", "steer"])
        .args(command);
    ended(line.current_dir(repository()))
}

/// NAME.c and its test, written by the tool itself.
fn new_policy(folder: &Path, name: &str) -> PathBuf {
    let mut line = Command::new(common::UNSPIN);
    let made = ended(line.args(["policy", "new", name]).current_dir(folder));
    assert_eq!(made.status, 0, "{made:#?}");
    folder.join(format!("{name}.c"))
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("it is there");
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replace(from, to)).expect("it is writable");
}

/// The counters that a steered command leaves on standard error.
#[track_caller]
fn counter(ended: &Ended, name: &str) -> u64 {
    let line = ended.err.lines().find(|line| line.starts_with('{'));
    let line = line.unwrap_or_else(|| panic!("no JSON: {ended:#?}"));
    let object: Value = serde_json::from_str(line).expect("one JSON object");
    let rows = object["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["counter"] == name);
    let row = row.unwrap_or_else(|| panic!("no {name}"));
    row["value"].as_u64().expect("a number")
}

const RUN: [&str; 7] = [
    "--",
    "unspin",
    "vm",
    "run",
    "scenarios/demo/1x4-ticket.toml",
    "--set",
    "duration=150ms",
];

#[test]
fn a_users_own_policy_steers_and_its_decisions_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = new_policy(folder.path(), "mine");
    let file = policy.to_string_lossy().into_owned();
    let list = format!("kernel-exit,{file}");
    let back = folder.path().to_string_lossy().into_owned();
    let mut command = vec!["--policy", &list, "--log-decisions", "/out/log", "--json"];
    command.extend(RUN);
    command.extend(["--set", "warm_up=20ms"]);
    let steered = steer(&["--bring-back", &back], &command);
    assert_eq!(steered.status, 0, "{steered:#?}");
    assert!(
        steered.err.contains("policy mine,kernel-exit"),
        "{}",
        steered.err
    );
    // It honours some yields and refuses others.
    for name in ["honoured", "refused"] {
        assert!(counter(&steered, name) > 0, "{name}: {}", steered.err);
    }
    assert_eq!(counter(&steered, "unlogged"), 0);
    let log = folder.path().join("log");
    let log = log.to_string_lossy();
    let replayed = unspin(&["policy", "replay", &log, "--with", &file]);
    assert_eq!(replayed.status, 0, "{replayed:#?}");
    assert!(
        replayed.out.contains("the same to the bit"),
        "{}",
        replayed.out
    );
    unspin(&["policy", "replay", &log]).refused(1, &["--with ./NAME.c"]);
    // One that counts otherwise would have decided otherwise.
    change(&policy, "#define TWO 2", "#define TWO 3");
    let replayed = unspin(&["policy", "replay", &log, "--with", &file]);
    replayed.refused(1, &["decisions come out otherwise here"]);
}

#[test]
fn what_the_kernel_refuses_in_a_policy_is_shown_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = new_policy(folder.path(), "endless");
    change(
        &policy,
        "\tstate->words[0]++;",
        "\tfor (volatile unsigned i = 0; i != 7; i *= 3)\n\t\t;\n\tstate->words[0]++;",
    );
    let file = policy.to_string_lossy().into_owned();
    let refused = steer(&[], &["--policy", &file, "--duration", "1s"]);
    assert_eq!(refused.status, 1, "{refused:#?}");
    for piece in [
        "with the policy endless: Linux ",
        "refuses the program `steer_",
        "endless.c:",
        "infinite loop detected",
        "the whole log is in /var/log/unspin/steer-",
    ] {
        assert!(
            refused.err.contains(piece),
            "{}\nlacks {piece}",
            refused.err
        );
    }
}
