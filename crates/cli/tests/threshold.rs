// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin threshold` on recordings made for it, and what `unspin record` refuses before it needs any rights.

mod common;

use std::{fs, path::Path};

use common::unspin;
use serde_json::Value;
use unspin_events::{Event, GuestMode, What, facts::Facts};
use unspin_recording::{Ended, Options, Recording};

/// How long a window of 200 PAUSEs takes.
const WINDOW_NS: u32 = 10_000;

/// A recording of one vCPU whose waits take so many windows each. Between waits it works; a switch begins and ends all.
fn recording(folder: &Path, waits: &[u64]) {
    let mut time_ns = 1_000_000;
    let event = |time_ns, what| Event {
        time_ns,
        vm: Some(0),
        vcpu: Some(0),
        thread: 100,
        cpu: 0,
        what,
    };
    let mut events = vec![event(
        time_ns,
        What::SwitchIn {
            previous_thread: 0,
            previous_vm: None,
        },
    )];
    for &windows in waits {
        for window in 0..windows {
            let inside_ns = if window == 0 {
                10 * WINDOW_NS
            } else {
                WINDOW_NS
            };
            time_ns += u64::from(inside_ns);
            events.push(event(
                time_ns,
                What::PauseExit {
                    guest_rip: Some(7),
                    mode: Some(GuestMode::Kernel),
                    window: Some(200),
                    inside_ns,
                    other_exits: 0,
                    interrupt_exits: 0,
                },
            ));
        }
    }
    events.push(event(
        time_ns,
        What::SwitchOut {
            next_thread: 0,
            next_vm: None,
            runnable: false,
            preempt: false,
            mode: None,
            exit_code: None,
            guest_rip: None,
        },
    ));
    let options = Options {
        segment_rows: 500,
        ..Options::default()
    };
    let mut recording =
        Recording::create(folder, Facts::default(), options).expect("an empty folder");
    recording.append(&events).expect("room");
    recording.finish(Ended::Finished, None).expect("room");
}

/// The rows of a table.
fn rows(folder: &Path, table: &str) -> Vec<Value> {
    let ended = unspin(&["threshold", &folder.to_string_lossy(), "--json"]);
    assert_eq!(ended.status, 0, "{ended:#?}");
    let object: Value = serde_json::from_str(&ended.out).expect("one object");
    let rows = object["rows"].as_array().expect("rows").clone();
    rows.into_iter()
        .filter(|row| row["table"] == table)
        .collect()
}

/// 300 waits of one or two windows, 40 of 100.
fn two_kinds(folder: &Path) {
    let waits: Vec<u64> = (0..340)
        .map(|wait| if wait % 17 < 15 { 1 + wait % 2 } else { 100 })
        .collect();
    recording(folder, &waits);
}

#[test]
fn two_kinds_of_waits_have_an_interval_between_them() {
    let folder = tempfile::tempdir().expect("a folder");
    two_kinds(folder.path());
    let interval = &rows(folder.path(), "interval")[0];
    // Ordinary: 10 and 20 us. Preemption: 1 ms.
    assert_eq!(interval["from_ns"], 32_768.0, "{interval}");
    assert_eq!(interval["to_ns"], 524_288.0, "{interval}");
    assert_eq!(interval["unseen_below_ns"], 10_000, "{interval}");
    let vm = &rows(folder.path(), "vm")[0];
    assert_eq!(vm["waits"], 340, "{vm}");
    let spun_ns = 10_000.0 * (150.0 + 150.0 * 2.0 + 40.0 * 100.0);
    assert_eq!(vm["spinning_ns"], spun_ns, "{vm}");
    let choices = rows(folder.path(), "threshold");
    let at = choices
        .iter()
        .find(|row| row["threshold_ns"] == 32_768.0)
        .expect("the interval's beginning");
    assert_eq!(
        (&at["in_interval"], &at["exits"]),
        (&"yes".into(), &40.into()),
        "{at}"
    );
    assert_eq!(at["needless_percent"], 0.0, "{at}");
    assert_eq!(at["spin_ns"], 40.0 * 32_768.0, "{at}");
    let text = unspin(&["threshold", &folder.path().to_string_lossy()]).out;
    for piece in [
        "by count",
        "by time",
        "####",
        "preemption",
        "interval",
        "lower bound",
    ] {
        assert!(text.contains(piece), "{text}");
    }
}

#[test]
fn one_kind_of_waits_has_no_interval_and_none_is_made_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let waits: Vec<u64> = (0..512u64)
        .map(|wait| 1 + wait.trailing_ones() as u64 * 2)
        .collect();
    recording(folder.path(), &waits);
    let interval = &rows(folder.path(), "interval")[0];
    assert_eq!(interval["from_ns"], Value::Null, "{interval}");
    assert!(
        interval["verdict"]
            .as_str()
            .expect("text")
            .starts_with("no valley")
    );
    for choice in rows(folder.path(), "threshold") {
        assert_eq!(choice["needless_percent"], Value::Null, "{choice}");
        assert_eq!(choice["in_interval"], Value::Null, "{choice}");
    }
}

#[test]
fn a_damaged_recording_says_so_where_its_numbers_are() {
    let folder = tempfile::tempdir().expect("a folder");
    two_kinds(folder.path());
    assert_eq!(rows(folder.path(), "problem").len(), 0);
    let segment = folder.path().join("events-000001.parquet");
    let bytes = fs::read(&segment).expect("a segment");
    fs::write(&segment, &bytes[..bytes.len() - 1]).expect("room");
    let problems = rows(folder.path(), "problem");
    let said = problems[0]["problem"].as_str().expect("text");
    assert!(said.contains("events-000001.parquet"), "{said}");
    let text = unspin(&["threshold", &folder.path().to_string_lossy()]).out;
    assert!(text.contains("not whole"), "{text}");
}

#[test]
fn what_is_no_recording_or_not_in_it_is_refused() {
    unspin(&["threshold", "/nonexistent"]).refused(1, &["/nonexistent", "No such file"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_string_lossy().into_owned();
    unspin(&["threshold", &path]).refused(1, &[&path, "no recording"]);
    two_kinds(folder.path());
    unspin(&["threshold", &path, "--vm", "9"]).refused(2, &["no VM 9", "it has: 0"]);
    // A second recording never mixes with the first.
    unspin(&["record", &path]).refused(1, &[&path, "must be empty", "name another folder"]);
    unspin(&["record", "/proc/version/x"]).refused(1, &["/proc/version/x", "Not a directory"]);
    unspin(&["record", &path, "--duration", "0s"]).refused(2, &["--duration"]);
}
