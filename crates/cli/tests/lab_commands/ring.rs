// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a recording, as a flight recorder keeps it: every reader takes it, says that it is cut, and comes to the same
//! shares.

use std::path::Path;

use serde_json::Value;
use unspin_events::Event;
use unspin_recording::{
    Ended, Recorded,
    ring::{Kept, Ring, RingOptions, Trigger},
};

use crate::common::{repository, unspin};

const MS: u64 = 1_000_000;

/// The lab's run of 600 ms.
fn record(into: &Path) {
    let scenario = repository().join("scenarios/demo/2x4-ticket.toml");
    let run = unspin(&[
        "lab",
        "run",
        &scenario.to_string_lossy(),
        "--duration=600ms",
        "--record",
        &into.to_string_lossy(),
    ]);
    assert_eq!(run.status, 0, "{run:#?}");
}

/// The same events through a ring that keeps 150 ms of them; what was kept around 300 ms.
fn through_a_ring(recorded: &Recorded, folder: &Path) -> std::path::PathBuf {
    let options = RingOptions {
        before_ns: 80 * MS,
        after_ns: 40 * MS,
        ..RingOptions::new(150 * MS, 1 << 30)
    };
    let at = |reason: &str, at_ns| Trigger {
        reason: reason.into(),
        at_ns,
        ..Trigger::default()
    };
    let facts = recorded.facts().clone();
    let mut ring = Ring::begin(folder, facts, options, at("earlier", 0)).expect("room");
    let mut kept = None;
    let mut batch: Vec<Event> = Vec::new();
    let mut due_ns = 2 * MS;
    for event in recorded.events() {
        while event.time_ns >= due_ns {
            ring.append(&batch).expect("room");
            ring.tick(due_ns).expect("room");
            batch.clear();
            if due_ns == 300 * MS {
                kept = Some(ring.keep(at("signal", due_ns)).expect("room"));
            }
            due_ns += 2 * MS;
        }
        batch.push(event);
    }
    ring.append(&batch).expect("room");
    ring.finish(Ended::Finished, None).expect("room");
    match kept {
        Some(Kept::Begun(folder)) => folder,
        other => panic!("a span: {other:?}"),
    }
}

#[test]
fn the_end_of_a_recording_is_explained_as_the_whole_and_said_to_be_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, ring) = (folder.path().join("whole"), folder.path().join("ring"));
    record(&whole);
    let recorded = Recorded::open(&whole).expect("a recording");
    let kept = through_a_ring(&recorded, &ring);
    let of = |recording: &Path| {
        let path = recording.to_string_lossy().into_owned();
        let explained = unspin(&["explain", &path, "--json"]);
        assert_eq!(explained.status, 0, "{explained:#?}");
        let vms = explained.rows("vm");
        assert_eq!(vms.len(), 2, "{explained:#?}");
        vms
    };
    let expected = of(&whole);
    for recording in [&ring, &kept] {
        for (vm, whole) in of(recording).iter().zip(&expected) {
            assert_eq!(vm["vm"], whole["vm"]);
            println!("{vm} of {whole}");
            let share = |row: &Value| row["spin_percent"].as_f64().expect("a number");
            assert!((share(vm) - share(whole)).abs() < 10.0, "{vm} {whole}");
        }
        let path = recording.to_string_lossy().into_owned();
        let page = folder.path().join("page.html");
        let page = page.to_string_lossy();
        let commands: [&[&str]; 3] = [&["explain"], &["outcomes"], &["report", "--out", &page]];
        for command in commands {
            let said = unspin(&[command, &[path.as_str()]].concat());
            assert_eq!(said.status, 0, "{said:#?}");
            let told = said.out + &said.err;
            assert!(told.contains("its beginning is cut"), "{command:?}: {told}");
        }
    }
    let span_ns = Recorded::open(&kept).expect("a recording").span_ns();
    let (first_ns, last_ns) = span_ns.expect("events");
    // From 220 ms on nothing is missing; what comes before that is of the segment in which it is.
    let first_wanted = recorded.events().find(|event| event.time_ns >= 220 * MS);
    assert!(
        first_ns <= first_wanted.expect("events").time_ns,
        "{first_ns}"
    );
    assert!(first_ns >= 200 * MS, "{first_ns}");
    assert!((338 * MS..=342 * MS).contains(&last_ns), "{last_ns}");
}
