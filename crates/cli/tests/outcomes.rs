// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin outcomes` on logs made here: what it prints, what it says of logs that are not whole, and what it refuses.

mod common;

use std::{fs, path::Path};

use common::unspin;
use serde_json::Value;
use unspin_events::{
    Event, GuestMode, IpiForm, What,
    log::{EventLog, Metadata},
};

fn event(time_ns: u64, vcpu: u16, what: What) -> Event {
    Event {
        time_ns,
        vm: Some(0),
        vcpu: Some(vcpu),
        thread: 100 + u32::from(vcpu),
        cpu: vcpu,
        what,
    }
}

fn switch_in() -> What {
    What::SwitchIn {
        previous_thread: 0,
        previous_vm: None,
    }
}

/// vCPU 1 is preempted in user mode; vCPU 0 sends it an IPI if `ipi`, and leaves by 1,500 pause-loop exits.
fn events(ipi: bool) -> Vec<Event> {
    let off = What::SwitchOut {
        next_thread: 0,
        next_vm: None,
        runnable: true,
        preempt: true,
        mode: Some(GuestMode::User),
        exit_code: None,
        guest_rip: None,
    };
    let mut events = vec![
        event(1_000, 0, switch_in()),
        event(1_000, 1, switch_in()),
        event(2_000, 1, off),
    ];
    if ipi {
        let what = What::Ipi {
            receiver_vcpu: 1,
            vector: 0xfc,
            delivery_mode: 0,
            form: IpiForm::Physical,
            destination: Some(1),
        };
        events.push(event(3_000, 0, what));
    }
    for number in 1..=1_500 {
        let time_ns = number * 20_000;
        let exit = What::PauseExit {
            guest_rip: Some(0xffff_ffff_8100_0120),
            mode: Some(GuestMode::Kernel),
            window: Some(100),
            inside_ns: 10_000,
            other_exits: 0,
            interrupt_exits: 0,
        };
        let entry = What::PauseEntry {
            outside_ns: 5_000,
            handling_ns: 4_000,
        };
        events.push(event(time_ns, 0, exit));
        events.push(event(time_ns + 1_000, 0, What::KvmVcpuOnSpin));
        events.push(event(time_ns + 5_000, 0, entry));
    }
    events
}

fn write(path: &Path, events: Vec<Event>, lost_events: u64) {
    let metadata = Metadata {
        machine: "a machine".into(),
        lost_events,
        ..Metadata::default()
    };
    let mut file = fs::File::create(path).expect("a file");
    let log = EventLog::new(metadata, events);
    log.write(&mut file).expect("written");
}

/// The rows of a table, by `unspin outcomes ARGUMENTS --json`.
fn rows(arguments: &[&str], table: &str) -> Vec<Value> {
    let ended = unspin(&[&["outcomes", "--json"], arguments].concat());
    assert_eq!(ended.json()["command"], "outcomes");
    ended.rows(table)
}

#[test]
fn a_log_becomes_the_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.log");
    write(&path, events(true), 0);
    let path = path.to_str().expect("UTF-8");
    let outcomes = rows(&[path], "ple_outcomes");
    assert_eq!(outcomes[0]["workload"], "calls");
    assert_eq!(outcomes[0]["ple_exits"], 1_500);
    assert_eq!(outcomes[0]["lost_opportunity_percent"], 100.0);
    assert_eq!(outcomes[1]["counted"], "as in the paper");
    assert_eq!(outcomes[1]["no_candidate_percent"], Value::Null);
    let reasons = rows(&[path], "ple_reasons");
    assert_eq!(reasons.len(), 1, "one workload needs no mean");
    assert_eq!(reasons[0]["function_call_percent"], 100.0);
    let runs = rows(&[path], "ple_runs");
    assert_eq!(runs[0]["above_hundred_percent"], 100.0);
    // Two workloads: pooled over exits, and averaged.
    let lonely = folder.path().join("locks.log");
    let mut few = events(true);
    few.truncate(3 + 1 + 3 * 500);
    few.remove(3);
    few.push(events(true)[3]);
    few.last_mut().expect("the IPI").time_ns = u64::MAX / 2;
    write(&lonely, few, 0);
    let both = rows(&[path, lonely.to_str().expect("UTF-8")], "ple_reasons");
    assert_eq!(both[2]["workload"], "all, pooled over exits");
    assert_eq!(both[2]["function_call_percent"], 75.0);
    assert_eq!(both[3]["workload"], "all, mean of workloads");
    assert_eq!(both[3]["function_call_percent"], 50.0);
}

#[test]
fn windows_have_a_time_only_where_their_unit_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.log");
    write(&path, events(true), 0);
    let path = path.to_str().expect("UTF-8");
    let told = |arguments: &[&str]| {
        let row = rows(&[&[path], arguments].concat(), "inefficiency").remove(0);
        let because = row["unknown_because"].as_str().unwrap_or_default();
        (row["inefficiency_percent"].clone(), because.to_owned())
    };
    // One exit each 20 us on one running vCPU: a window of 10 us and 4 us of handling.
    let (percent, because) = told(&["--window-unit", "pauses"]);
    assert_eq!(because, "");
    assert!(
        (percent.as_f64().expect("known") - 70.0).abs() < 0.1,
        "{percent}"
    );
    for (arguments, reason) in [
        (&[][..], "neither kvm_amd nor kvm_intel is known"),
        (
            &["--window-unit", "cycles"],
            "the TSC's frequency is not known",
        ),
        (
            // 100 cycles of 1 ms each: no exit could come after 10 us.
            &["--window-unit", "cycles", "--tsc-khz", "1"],
            "the window is ignored: exits come more often than it allows",
        ),
    ] {
        assert_eq!(told(arguments), (Value::Null, reason.to_owned()));
    }
}

/// Reports and events number VMs each in their own way: threads say which is which.
#[test]
fn the_guests_own_share_stands_beside() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.log");
    write(&path, events(true), 0);
    let report = folder.path().join("run.json");
    let text = r#"{"rows": [
        {"table": "vm", "vm": "vm0", "spin_share_percent": 11.0},
        {"table": "vm", "vm": "vm1", "spin_share_percent": 77.5},
        {"table": "vcpu", "vm": "vm0", "vcpu": 0, "thread": 900},
        {"table": "vcpu", "vm": "vm1", "vcpu": 0, "thread": 100}]}"#;
    fs::write(&report, text).expect("written");
    let path = path.to_str().expect("UTF-8");
    let share =
        |arguments: &[&str]| rows(arguments, "inefficiency")[0]["guest_spin_percent"].clone();
    assert_eq!(share(&[path]), Value::Null);
    let report = report.to_str().expect("UTF-8");
    assert_eq!(share(&[path, "--guest", report]), 77.5);
}

#[test]
fn symbols_name_the_function_and_decide() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.log");
    write(&path, events(true), 0);
    let map = folder.path().join("System.map");
    let text = "ffffffff81000100 t delay_tsc\nffffffff81000200 T _etext\n";
    fs::write(&map, text).expect("written");
    let arguments = [
        path.to_str().expect("UTF-8"),
        "--symbols",
        map.to_str().expect("UTF-8"),
    ];
    assert_eq!(rows(&arguments, "ple_reasons")[0]["delay_percent"], 100.0);
    let location = &rows(&arguments, "ple_locations")[0]["location"];
    assert_eq!(location, "delay_tsc+0x20");
    // What the host alone would say stands beside it, where there is anything to compare.
    let agrees = || rows(&arguments, "ple_reasons")[0]["host_agrees_percent"].clone();
    assert_eq!(agrees(), Value::Null);
    for (function, percent) in [
        ("native_queued_spin_lock_slowpath", 0.0),
        ("smp_call_function_many_cond.isra.0", 100.0),
    ] {
        fs::write(&map, text.replace("delay_tsc", function)).expect("written");
        assert_eq!(agrees(), percent, "{function}");
    }
}

#[test]
fn what_is_missing_is_said_and_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let blind = folder.path().join("blind.log");
    write(&blind, events(false), 0);
    let lossy = folder.path().join("lossy.log");
    write(&lossy, events(true), 7);
    for (path, said) in [
        (&blind, "blind: IPIs were not seen"),
        (&lossy, "lossy: 7 events were lost"),
    ] {
        let path = path.to_str().expect("UTF-8");
        let outcome = rows(&[path], "ple_outcomes").remove(0);
        assert_eq!(outcome["unknown_percent"], 100.0, "{outcome}");
        assert_eq!(outcome["lost_opportunity_percent"], 0.0, "{outcome}");
        let ended = unspin(&["outcomes", path]);
        assert!(ended.out.contains(said), "{ended:#?}");
    }
    // Cut off in the middle: what is there counts, and the rest is missed aloud.
    let bytes = fs::read(folder.path().join("lossy.log")).expect("the log");
    let cut = folder.path().join("cut.log");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    let ended = unspin(&["outcomes", cut.to_str().expect("UTF-8")]);
    assert_eq!(ended.status, 0, "{ended:#?}");
    assert!(ended.out.contains("the log is truncated"), "{ended:#?}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::write(path("text"), "hello").expect("written");
    fs::create_dir(path("empty")).expect("made");
    write(Path::new(&path("log")), events(true), 0);
    unspin(&["outcomes", &path("nothing")]).refused(1, &["nothing", "No such file"]);
    unspin(&["outcomes", &path("text")]).refused(1, &["text", "event log"]);
    unspin(&["outcomes", &path("empty")]).refused(1, &["empty"]);
    unspin(&["outcomes"]).refused(2, &["RECORDING"]);
    unspin(&["outcomes", &path("log"), "--symbols", &path("text")])
        .refused(1, &["text", "line 1 is not"]);
    unspin(&["outcomes", &path("log"), "--guest", "a", "--guest", "b"])
        .refused(2, &["more --guest files than recordings"]);
    unspin(&["outcomes", &path("log"), "--guest", &path("text")]).refused(1, &["text"]);
    unspin(&["outcomes", &path("log"), "--tsc-khz", "0"]).refused(2, &["tsc-khz"]);
}
