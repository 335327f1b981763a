// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that need neither KVM nor the testbed, and what every command promises.

mod common;

use std::{collections::BTreeMap, fs};

use common::{SCENARIO, folder, repository, scenario, unspin};
use serde_json::Value;

/// The rows of one JSON object, which must be all there is on standard output.
#[track_caller]
fn rows(ended: &common::Ended, command: &str) -> Vec<Value> {
    assert_eq!(ended.status, 0, "{ended:#?}");
    let object: Value = serde_json::from_str(&ended.out).expect("one JSON object");
    let keys: Vec<_> = object.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        ["format_version", "command", "commit", "machine", "rows"]
    );
    assert_eq!(object["command"], command);
    assert!(
        object["machine"]
            .as_str()
            .is_some_and(|text| text.contains("Linux "))
    );
    let rows = object["rows"].as_array().expect("rows").clone();
    for row in &rows {
        let flat = |value: &Value| !value.is_object() && !value.is_array();
        assert!(row.as_object().expect("a row").values().all(flat), "{row}");
    }
    rows
}

#[test]
fn doctor_looks_at_everything() {
    let text = unspin(&["doctor"]);
    assert_eq!(text.status, 0, "{text:#?}");
    let rows = rows(&unspin(&["doctor", "--json"]), "doctor");
    let found: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (row["check"].as_str().expect("a name"), row))
        .collect();
    for check in [
        "root",
        "/dev/kvm",
        "KVM hardware",
        "pause-loop exits",
        "BTF",
        "BPF",
        "sched_ext",
        "sched_ext in BTF",
        "slices of threads",
        "QEMU (stock)",
        "clang",
    ] {
        let row = found
            .get(check)
            .unwrap_or_else(|| panic!("no line about {check}"));
        let status = row["status"].as_str().expect("a status");
        assert!(["ok", "limited", "missing"].contains(&status), "{row}");
        // What is not well says what to do.
        assert_eq!(row["advice"].is_null(), status == "ok", "{row}");
        assert!(text.out.contains(check), "{}", text.out);
    }
}

#[test]
fn doctor_finds_nothing_in_an_empty_world() {
    let folder = folder("");
    let ended = common::in_an_empty_world(&folder, &["doctor", "--json"]);
    let rows = rows(&ended, "doctor");
    // These are system calls: they need no files.
    let calls = ["root", "BPF", "slices of threads"];
    let files = |row: &&Value| calls.iter().all(|call| row["check"] != *call);
    for row in rows.iter().filter(files) {
        assert_ne!(row["status"], "ok", "{row}");
    }
}

#[test]
fn the_schema_is_json() {
    let ended = unspin(&["scenario", "schema"]);
    assert_eq!(ended.status, 0, "{ended:#?}");
    let schema: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(schema["properties"]["vm"]["type"], "array");
}

#[test]
fn check_prints_a_scenario_that_says_the_same() {
    let folder = folder(SCENARIO);
    let first = unspin(&["scenario", "check", &scenario(&folder), "--seed", "7"]);
    assert_eq!(first.status, 0, "{first:#?}");
    assert!(first.out.contains("seed = 7"), "{}", first.out);
    fs::write(folder.path().join("s.toml"), &first.out).expect("written");
    let second = unspin(&["scenario", "check", &scenario(&folder)]);
    assert_eq!(second.out, first.out);
}

#[test]
fn every_scenario_of_the_repository_is_valid() {
    let mut folders = vec![repository().join("scenarios")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            // What the lab takes beside scenarios: `lab conform` and --costs check those.
            let name = path.to_string_lossy();
            let beside = [".costs.toml", ".conformance.toml"];
            let beside = beside.iter().any(|ending| name.ends_with(ending));
            if path.is_dir() {
                folders.push(path);
            } else if !beside
                && path
                    .extension()
                    .is_some_and(|extension| extension == "toml")
            {
                let ended = unspin(&["scenario", "check", &path.to_string_lossy()]);
                assert_eq!(ended.status, 0, "{ended:#?}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 12, "{seen} scenarios");
}

#[test]
fn bench_threads_has_a_row_for_each_cell() {
    let ended = unspin(&[
        "bench",
        "threads",
        "--lock",
        "ticket,test_and_test_and_set",
        "--threads",
        "1,2",
        "--duration",
        "30ms",
        "--set",
        "warm_up=1ms",
        "--repeat",
        "2",
        "--json",
    ]);
    let rows = rows(&ended, "bench threads");
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["lock"].as_str().expect("a lock"),
                row["threads"].as_u64(),
            )
        })
        .collect();
    let expected = [
        ("ticket", Some(1)),
        ("ticket", Some(2)),
        ("test_and_test_and_set", Some(1)),
        ("test_and_test_and_set", Some(2)),
    ];
    assert_eq!(cells, expected);
    for row in rows {
        assert_eq!(row["samples"], 2);
        // Beside an emulator on one of two cores a ticket lock between two threads did 774.
        let rate = |name: &str| row[name].as_f64().expect("a rate");
        let (least, most) = (
            rate("operations_per_second_least"),
            rate("operations_per_second_most"),
        );
        let mean = rate("operations_per_second");
        assert!(mean > 1_000.0, "{row}");
        assert!(0.0 < least && least <= mean && mean <= most, "{row}");
        assert!(
            row["acquisitions"].as_u64().is_some_and(|count| count > 0),
            "{row}"
        );
    }
}

#[test]
fn bench_threads_measures_baselines_and_points() {
    let ended = unspin(&[
        "bench",
        "threads",
        "--lock",
        "test_and_test_and_set",
        "--baselines",
        "glibc_mutex,parking_lot",
        "--threads",
        "2",
        "--hold",
        "50ns,500ns",
        "--think",
        "0ns",
        "--neighbours",
        "1",
        "--run-states",
        "none",
        "--duration",
        "30ms",
        "--set",
        "warm_up=1ms",
        "--repeat",
        "2",
        "--json",
    ]);
    let rows = rows(&ended, "bench threads");
    let of_table = |name: &str| rows.iter().filter(|row| row["table"] == name).count();
    assert_eq!(of_table("threads"), 6, "three locks, two holds");
    assert!(of_table("points") <= 2, "none where no baseline is as fair");
    for row in rows.iter().filter(|row| row["table"] == "threads") {
        assert_eq!(row["neighbours"], 1, "{row}");
        let number = |key: &str| row[key].as_f64();
        assert!(
            number("jain_index").is_some_and(|index| (0.5..=1.0).contains(&index)),
            "{row}"
        );
        assert!(
            number("cpu_per_operation_ns").is_some_and(|ns| ns > 1.0),
            "{row}"
        );
        let longest = number("acquire_longest_ns").expect("a time");
        let percentiles = ["acquire_p50_ns", "acquire_p95_ns", "acquire_p99_ns"].map(number);
        assert!(percentiles.is_sorted(), "{row}");
        assert!(percentiles[2].is_some_and(|ns| ns <= longest), "{row}");
    }
}

#[test]
fn bench_ecs_has_a_row_for_each_class() {
    let ended = unspin(&[
        "bench",
        "ecs",
        "--threads",
        "1",
        "--repeat",
        "3",
        "--pairs",
        "2000",
        "--json",
    ]);
    let rows = rows(&ended, "bench ecs");
    let names: Vec<_> = rows
        .iter()
        .filter_map(|row| row["section"].as_str())
        .collect();
    let expected = [
        "spinlock",
        "rwlock_read",
        "rwlock_write",
        "mutex",
        "rwsem_read",
        "rwsem_write",
        "rcu",
    ];
    assert_eq!(names, expected);
    assert!(
        rows.iter()
            .all(|row| row["on_ns"].as_f64().is_some_and(|ns| ns > 0.1))
    );
}

#[test]
fn the_binary_needs_no_loader() {
    // PT_INTERP (3) is what makes a program ask for a dynamic loader. ELF64: e_phoff at 32, e_phnum at 56, 56 bytes each.
    let binary = fs::read(common::UNSPIN).expect("the binary");
    let at = |offset: usize, length: usize| {
        let bytes = &binary[offset..offset + length];
        bytes
            .iter()
            .rev()
            .fold(0usize, |value, &byte| value << 8 | usize::from(byte))
    };
    assert_eq!(&binary[..4], b"\x7fELF");
    let types: Vec<_> = (0..at(56, 2))
        .map(|index| at(at(32, 8) + index * 56, 4))
        .collect();
    assert!(types.contains(&1) && !types.contains(&3), "{types:?}");
}

#[test]
fn help_is_no_failure() {
    for arguments in [&["--help"][..], &["vm", "run", "--help"], &["--version"]] {
        assert_eq!(unspin(arguments).status, 0);
    }
}
