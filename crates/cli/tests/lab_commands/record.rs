// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the lab as a recording: what analyses of real hosts say of it is what the lab itself counted.

use std::{path::PathBuf, process::Command};

use serde_json::Value;

fn unspin(arguments: &[&str]) -> Value {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ended = Command::new(env!("CARGO_BIN_EXE_unspin"))
        .args(arguments)
        .current_dir(repository)
        .output()
        .expect("it starts");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&ended.stdout).expect("JSON")
}

fn rows<'a>(object: &'a Value, table: &str) -> Vec<&'a Value> {
    let rows = object["rows"].as_array().expect("rows");
    rows.iter().filter(|row| row["table"] == table).collect()
}

#[test]
fn outcomes_of_a_recorded_run_are_those_that_the_lab_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("run").to_string_lossy().into_owned();
    let scenario = "scenarios/demo/2x4-ticket.toml";
    let run = unspin(&[
        "lab",
        "run",
        scenario,
        "--duration",
        "400ms",
        "--record",
        &into,
        "--json",
    ]);
    let vms = rows(&run, "vm");
    assert_eq!(vms.len(), 2);
    let outcomes = unspin(&["outcomes", &into, "--json"]);
    let volume = rows(&outcomes, "ple_exits");
    assert_eq!(volume.len(), 2, "{outcomes:#}");
    for (counted, seen) in vms.iter().zip(&volume) {
        assert!(counted["pause_exits"].as_u64() > Some(100), "{counted}");
        assert_eq!(counted["pause_exits"], seen["ple_exits"], "{seen}");
    }
    // A second run into the same folder is refused, and nothing is lost.
    let again = Command::new(env!("CARGO_BIN_EXE_unspin"))
        .args(["lab", "run", scenario, "--record", &into])
        .current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("it starts");
    assert!(!again.status.success());
    assert_eq!(
        rows(&unspin(&["outcomes", &into, "--json"]), "ple_exits").len(),
        2
    );
}
