// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written is what is read, in order of time, whatever the segments are.

mod common;

use common::{any_event, read, record, rows, segments, switch};
use proptest::prelude::*;
use unspin_events::{Event, What, facts::Facts};
use unspin_recording::{Ended, Error, Options, Recorded, Recording};

fn sorted(events: &[Event]) -> Vec<Event> {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| event.time_ns);
    sorted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every kind, every value, one segment: the fields and nothing else come back.
    #[test]
    fn one_segment(events in prop::collection::vec(any_event(), 1..200)) {
        let folder = tempfile::tempdir().expect("a folder");
        record(folder.path(), &events, Options::default());
        let (mut found, mut problems) = read(folder.path());
        problems.retain(|problem| !problem.starts_with("events were lost")); // drawn ones
        prop_assert!(problems.is_empty(), "{:?}", problems);
        let key = |event: &Event| {
            let raw = event.encode();
            let rest = (raw.kind, raw.vm, raw.vcpu, raw.cpu);
            (raw.time_ns, raw.thread, rest, raw.argument0, raw.argument1, raw.argument2)
        };
        prop_assert!(found.is_sorted_by_key(|event| event.time_ns));
        let mut events = events;
        events.sort_by_key(key);
        found.sort_by_key(key);
        prop_assert_eq!(found, events);
    }

    /// Times almost in order, in many segments, some merged: everything comes back once, in order.
    #[test]
    fn many_segments(
        jitter in prop::collection::vec(0..40u64, 1..300),
        segment_rows in 1..20usize,
        merge_segments in 0..6u32,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let times = jitter.iter().enumerate();
        let events: Vec<Event> = times
            .map(|(index, jitter)| switch(1_000 + 3 * index as u64 + jitter, index as u32))
            .collect();
        let options = Options { merge_segments, ..rows(segment_rows) };
        record(folder.path(), &events, options);
        let (mut found, problems) = read(folder.path());
        // At most 16 segments may overlap in time; 40 ns of jitter are 14 events.
        prop_assert!(problems.is_empty(), "{:?}", problems);
        prop_assert!(found.is_sorted_by_key(|event| event.time_ns));
        found.sort_by_key(|event| (event.time_ns, event.thread));
        let mut events = sorted(&events);
        events.sort_by_key(|event| (event.time_ns, event.thread));
        prop_assert_eq!(found, events);
    }
}

#[test]
fn segments_are_closed_by_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        segment_ns: 100,
        merge_segments: 0,
        ..Options::default()
    };
    let mut recording = Recording::create(folder.path(), Facts::default(), options).expect("empty");
    recording.append(&[switch(1, 1)]).expect("room");
    for now_ns in [1_000, 1_050, 1_099] {
        recording.tick(now_ns).expect("room");
    }
    assert!(segments(folder.path()).is_empty());
    recording.append(&[switch(2, 1)]).expect("room");
    recording.tick(1_100).expect("room");
    assert_eq!(segments(folder.path()).len(), 1);
    assert_eq!(recording.events_written(), 2);
    // Whoever reads now has both, and is told that it goes on.
    let (found, problems) = read(folder.path());
    assert_eq!(found.len(), 2);
    assert!(problems[0].contains("it goes on"), "{problems:?}");
    // Nothing waits, so nothing is closed.
    recording.tick(5_000).expect("room");
    assert_eq!(segments(folder.path()).len(), 1);
}

#[test]
fn merging_leaves_few_files_and_every_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let events: Vec<Event> = (0..1_000).map(|time_ns| switch(time_ns, 7)).collect();
    let options = Options {
        merge_segments: 10,
        ..rows(8)
    };
    record(folder.path(), &events, options); // 125 segments
    let files = segments(folder.path());
    let names: Vec<_> = files.iter().flat_map(|path| path.file_name()).collect();
    assert_eq!(files.len(), 12 + 5, "{names:?}");
    assert_eq!(names[0], "events-000000-000009.parquet");
    assert_eq!(names[16], "events-000124.parquet");
    let (found, problems) = read(folder.path());
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(found, events);
}

#[test]
fn losses_keep_their_place_and_are_summed() {
    let folder = tempfile::tempdir().expect("a folder");
    let lost = |time_ns, events, lost_kind| Event {
        what: What::Lost { events, lost_kind },
        ..switch(time_ns, 0)
    };
    let events = [
        switch(1, 5),
        lost(2, 10, 4),
        switch(3, 5),
        lost(4, 5, 4),
        lost(4, 1, 1),
    ];
    record(folder.path(), &events, rows(2));
    let recorded = Recorded::open(folder.path()).expect("a recording");
    assert_eq!(recorded.events().collect::<Vec<_>>(), events);
    let sums: Vec<_> = recorded.facts().lost.iter().collect();
    assert_eq!(
        sums,
        [
            (&"pause_exit".to_owned(), &15),
            (&"switch_in".to_owned(), &1)
        ]
    );
}

#[test]
fn a_folder_that_is_not_empty_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let begin = || Recording::create(folder.path(), Facts::default(), Options::default());
    begin()
        .expect("empty")
        .finish(Ended::Finished, None)
        .expect("room");
    let (found, problems) = read(folder.path());
    assert!(found.is_empty() && problems.is_empty(), "{problems:?}");
    let error = begin().expect_err("a second run");
    assert!(matches!(error, Error::NotEmpty { .. }));
    let said = error.to_string();
    let path = folder.path().display().to_string();
    assert!(
        said.contains(&path) && said.contains("recording.json"),
        "{said}"
    );
    let error = Recording::create("/proc/x".as_ref(), Facts::default(), Options::default())
        .expect_err("no place to write");
    assert!(error.to_string().contains("/proc/x"), "{error}");
}
