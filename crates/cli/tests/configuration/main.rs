// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration file as `unspin config`, `serve` and `steer` read it, and the latch of `steer --service`, without root and
//! without KVM.

#[path = "../common/mod.rs"]
mod common;

use std::{fs, path::Path, process::Command};

use common::{UNSPIN, ended, unspin};
use serde_json::Value;

/// A file of that text in a folder that goes at the end.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("unspin.toml");
    fs::write(&path, text).expect("written");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

#[test]
fn the_default_is_valid_and_sets_nothing() {
    let (_folder, path) = file(&unspin(&["config", "default"]).out);
    let checked = unspin(&["config", "check", &path]);
    assert_eq!(checked.status, 0, "{checked:#?}");
    assert!(checked.out.contains("nothing is wrong"), "{checked:#?}");
    let shown = unspin(&["config", "show", "--json", &path]);
    let object: Value = serde_json::from_str(&shown.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 14);
    for row in rows {
        assert_eq!(row["from"], "default", "{row}");
    }
}

#[test]
fn a_value_says_where_it_comes_from() {
    let (_folder, path) = file("[steer]\n# for now\npolicy = \"loan\"\n");
    let shown = unspin(&["config", "show", "--json", &path]);
    let object: Value = serde_json::from_str(&shown.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows");
    let policy = rows.iter().find(|row| row["key"] == "steer.policy");
    let policy = policy.expect("a row");
    assert_eq!(policy["value"], "\"loan\"");
    assert_eq!(policy["from"], format!("{path}:3"));
}

#[test]
fn whoever_reads_it_refuses_what_it_does_not_know() {
    let (_folder, path) = file("[serve]\nlisten = \"127.0.0.1:0\"\nintervall = \"2s\"\n");
    let place = format!("{path}:3:1: unknown key `intervall` in [serve]; did you mean `interval`?");
    unspin(&["config", "check", &path]).refused(2, &[&place]);
    unspin(&["config", "show", &path]).refused(2, &[&place]);
    unspin(&["serve", "--config", &path]).refused(2, &[&place]);
    unspin(&["steer", "--config", &path]).refused(2, &[&place]);
    let json = unspin(&["config", "check", "--json", &path]);
    assert_eq!(json.status, 2, "{json:#?}");
    let object: Value = serde_json::from_str(&json.out).expect("JSON");
    let row = &object["rows"][0];
    assert_eq!((&row["line"], &row["column"]), (&3.into(), &1.into()));
    assert_eq!(row["key"], "serve.intervall");
    unspin(&["steer", "--config", "/nonexistent/u.toml"]).refused(
        2,
        &["/nonexistent/u.toml: the configuration cannot be read"],
    );
}

#[test]
fn a_command_line_and_a_file_that_contradict_are_refused() {
    let (_folder, path) = file("[steer]\nonly_vms = true\n");
    unspin(&["steer", "--config", &path, "--policy", "apple"])
        .refused(2, &["--only-vms is for our scheduler"]);
    unspin(&["steer", "--config", &path, "--dry-run", "--policy", "loan"])
        .refused(2, &["exclude each other"]);
}

/// `unspin steer` whose state is in that folder.
fn steer(state: &Path, words: &[&str]) -> common::Ended {
    let mut command = Command::new(UNSPIN);
    command.arg("steer").args(words);
    ended(command.env("STATE_DIRECTORY", state))
}

#[test]
fn a_latch_keeps_the_service_off_until_it_is_cleared() {
    let folder = tempfile::tempdir().expect("a folder");
    let latch = folder.path().join("steer-latch.toml");
    fs::write(
        &latch,
        "state = \"taken-back\"\nsince = \"2026-11-25 15:30:01 UTC\"\nprocess = 7\nboot = \"b\"\nkernel = \"7.2\"\n\
         version = \"0.1.0\"\npolicy = \"auto\"\nwhy = \"runnable task stall\"\nadvice = \"look in the dump\"\nkept = \"/var/log/x\"\n",
    )
    .expect("written");
    let pieces = [
        "steer stays off: on 2026-11-25 15:30:01 UTC the kernel took its own scheduler back",
        "runnable task stall",
        "look in the dump",
        "/var/log/x",
        "unspin steer --clear-latch",
    ];
    for _ in 0..2 {
        steer(folder.path(), &["--service"]).refused(4, &pieces);
    }
    assert!(latch.exists());
    let cleared = steer(folder.path(), &["--clear-latch"]);
    assert_eq!(cleared.status, 0, "{cleared:#?}");
    assert!(
        cleared.out.starts_with("cleared: on 2026-11-25"),
        "{cleared:#?}"
    );
    assert!(!latch.exists());
    let again = steer(folder.path(), &["--clear-latch"]);
    assert_eq!((again.status, &*again.out), (0, "nothing is latched\n"));
    steer(folder.path(), &["--clear-latch", "--policy", "loan"]).refused(2, &["--clear-latch"]);
    steer(folder.path(), &["--service", "--", "true"]).refused(2, &["--service"]);
}
