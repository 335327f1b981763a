// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench engine` without its baselines, and where their tools are missing.

mod common;

use std::process::Command;

use common::{UNSPIN, ended, unspin};

#[test]
fn the_engine_alone() {
    let arguments = [
        "bench",
        "engine",
        "--baselines",
        "none",
        "--timers",
        "1,8",
        "--events",
        "50000",
    ];
    let ended = unspin(&[&arguments[..], &["--rounds", "2", "--json"]].concat());
    assert_eq!(ended.status, 0, "{ended:#?}");
    let document: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(document["command"], "bench engine");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for (row, timers) in rows.iter().zip([1, 8]) {
        assert_eq!(row["timers"], timers);
        // 50,000 uniform delays on the mean: a standard error of 0.26 %.
        let events = row["events"].as_u64().expect("a number");
        assert!((49_400..50_600).contains(&events), "{events}");
        assert!(
            row["events_per_second"]
                .as_f64()
                .is_some_and(|rate| rate > 1e5),
            "{row}"
        );
        for baseline in ["simpy", "nexosim"] {
            assert!(row[format!("ratio_to_{baseline}")].is_null(), "{row}");
        }
    }
}

#[test]
fn a_missing_tool_is_named() {
    for (baseline, tool) in [("simpy", "python3"), ("nexosim", "cargo")] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(UNSPIN);
        command.args(["bench", "engine", "--baselines", baseline]);
        command
            .env("PATH", folder.path())
            .env("HOME", folder.path());
        command.env("UNSPIN_CACHE", folder.path().join("cache"));
        if baseline == "simpy" && std::path::Path::new("/usr/bin/python3").exists() {
            continue; // it would be found there, whatever PATH says
        }
        ended(&mut command).refused(2, &[tool, "not on PATH", "apt-get install"]);
    }
}

#[test]
fn no_timers_are_refused() {
    for timers in ["0", "65537"] {
        unspin(&["bench", "engine", "--timers", timers]).refused(2, &["--timers", timers]);
    }
}
