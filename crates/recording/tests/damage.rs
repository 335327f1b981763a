// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that were cut off, damaged, or made to harm: what is whole is read, the rest is told, nothing is guessed.

mod common;

use std::{fs, path::Path};

use common::{hostile, read, record, replace, rows, segments, switch};
use unspin_events::Event;
use unspin_recording::{Error, Options, Recorded};

const ROWS: usize = 20;

/// Three segments of 20 events; times 0 to 59.
fn three_segments(folder: &Path) -> Vec<Event> {
    let events: Vec<Event> = (0..60).map(|time_ns| switch(time_ns, 5)).collect();
    record(folder, &events, rows(ROWS));
    assert_eq!(segments(folder).len(), 3);
    events
}

/// The events but for those of the middle segment, in whose place stands that some are lost.
fn without_the_middle(events: &[Event]) -> Vec<Event> {
    let lost = Event::lost(40, u64::MAX, 0);
    [&events[..ROWS], &[lost], &events[2 * ROWS..]].concat()
}

#[test]
fn a_segment_cut_off_at_any_byte_is_left_out_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = three_segments(folder.path());
    let middle = &segments(folder.path())[1];
    let bytes = fs::read(middle).expect("a segment");
    let expected = without_the_middle(&events);
    for length in 0..bytes.len() {
        fs::write(middle, &bytes[..length]).expect("room");
        let (found, problems) = read(folder.path());
        assert_eq!(found, expected, "cut at {length} of {}", bytes.len());
        assert!(
            problems[0].contains("events-000001.parquet"),
            "{problems:?}"
        );
        assert!(problems[1].contains("40 of 60"), "{problems:?}");
    }
    fs::write(middle, &bytes).expect("room");
    assert_eq!(read(folder.path()), (events, Vec::new()));
}

#[test]
fn a_segment_with_any_byte_changed_is_left_out_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = three_segments(folder.path());
    let middle = &segments(folder.path())[1];
    let bytes = fs::read(middle).expect("a segment");
    let expected = without_the_middle(&events);
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        fs::write(middle, &changed).expect("room");
        let (found, problems) = read(folder.path());
        assert_eq!(found, expected, "byte {place} of {}", bytes.len());
        assert!(!problems.is_empty());
    }
}

/// Whoever means harm gives the file a hash that fits. Then values may be others, but nothing falls over, nothing is
/// out of order, and no more rows appear than a segment may have.
#[test]
fn a_hostile_segment_gives_an_error_or_events_and_never_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let events: Vec<Event> = (0..9)
        .map(|time_ns| switch(time_ns, time_ns as u32))
        .collect();
    record(folder.path(), &events, rows(ROWS));
    let path = &segments(folder.path())[0];
    let bytes = fs::read(path).expect("a segment");
    let mut told = 0;
    for place in 0..bytes.len() {
        for value in [0x00, 0xff, bytes[place] ^ 0x11] {
            let mut changed = bytes.clone();
            changed[place] = value;
            told += usize::from(hostile(folder.path(), path, &changed));
        }
    }
    assert!(told > bytes.len() / 2, "{told} changes were noticed");
}

#[test]
fn a_merged_file_is_never_counted_beside_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let events: Vec<Event> = (0..60).map(|time_ns| switch(time_ns, 5)).collect();
    let parts = tempfile::tempdir().expect("a folder");
    record(parts.path(), &events, rows(ROWS));
    let options = Options {
        merge_segments: 3,
        ..rows(ROWS)
    };
    record(folder.path(), &events, options);
    let merged = segments(folder.path());
    assert_eq!(merged.len(), 1);
    let whole = fs::read(&merged[0]).expect("a segment");
    // Until the parts are gone, their hashes stand in the list.
    let list = |folder: &Path| fs::read(folder.join("hashes.jsonl")).expect("a list");
    let both = [list(parts.path()), list(folder.path())].concat();
    fs::write(folder.path().join("hashes.jsonl"), both).expect("room");
    // Killed between the new name and the removal of any of the parts.
    for part in segments(parts.path()).iter().rev() {
        let copy = folder.path().join(part.file_name().expect("a name"));
        fs::copy(part, copy).expect("room");
        assert_eq!(read(folder.path()), (events.clone(), Vec::new()));
    }
    // All parts are there and the merged one is damaged: the parts are used.
    for length in [0, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&merged[0], &whole[..length]).expect("room");
        let (found, problems) = read(folder.path());
        assert_eq!(found, events);
        assert!(problems[0].ends_with("its parts are used"), "{problems:?}");
    }
    // Killed while the merged one was being written.
    fs::remove_file(&merged[0]).expect("there");
    let partial = format!("{}.partial", merged[0].display());
    fs::write(partial, &whole[..whole.len() / 2]).expect("room");
    assert_eq!(read(folder.path()), (events, Vec::new()));
}

#[test]
fn missing_and_unfinished_segments_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = three_segments(folder.path());
    let files = segments(folder.path());
    fs::rename(&files[1], format!("{}.partial", files[1].display())).expect("there");
    let (found, problems) = read(folder.path());
    assert_eq!(found, without_the_middle(&events));
    for said in [
        "events-000001.parquet is missing",
        "events-000001.parquet.partial was never finished",
        "40 of 60 recorded events are there",
    ] {
        let known = problems.iter().any(|problem| problem.contains(said));
        assert!(known, "{said}: {problems:?}");
    }
}

#[test]
fn a_description_cut_off_anywhere_costs_the_names_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = three_segments(folder.path());
    let path = folder.path().join("recording.json");
    let text = fs::read(&path).expect("a description");
    let last = text.iter().rposition(|&byte| byte == b'}').expect("JSON");
    for length in 0..=last {
        fs::write(&path, &text[..length]).expect("room");
        let (found, problems) = read(folder.path());
        assert_eq!(found, events, "cut at {length}");
        assert!(problems[0].contains("recording.json"), "{problems:?}");
    }
    fs::remove_file(&path).expect("there");
    let (found, problems) = read(folder.path());
    assert_eq!(found, events);
    assert!(
        problems[0].contains("without recording.json"),
        "{problems:?}"
    );
}

/// The list of hashes is damaged: a segment that it does not name is read and that is said; one that it names otherwise is
/// left out; the others are as before.
#[test]
fn a_list_of_hashes_cut_off_or_changed_anywhere_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = three_segments(folder.path());
    let path = folder.path().join("hashes.jsonl");
    let list = fs::read(&path).expect("a list");
    for length in 0..list.len() {
        fs::write(&path, &list[..length]).expect("room");
        let (found, problems) = read(folder.path());
        assert_eq!(found, events, "cut at {length}");
        // Without its end the last line is a line still.
        let unchecked = 3
            - usize::from(length == list.len() - 1) * 3
            - usize::from(length < list.len() - 1) * (length + 1) / (list.len() / 3);
        let told = problems
            .iter()
            .filter(|said| said.contains("read unchecked"));
        assert_eq!(told.count(), unchecked, "cut at {length}: {problems:?}");
    }
    fs::remove_file(&path).expect("there");
    let (found, problems) = read(folder.path());
    assert_eq!((found, problems.len()), (events.clone(), 3));
    for place in 0..list.len() {
        let mut changed = list.clone();
        changed[place] ^= 1 << (place % 8);
        fs::write(&path, &changed).expect("room");
        let (found, problems) = read(folder.path());
        let known: Vec<_> = found.iter().filter(|event| event.thread != 0).collect();
        assert!(known.len() == 60 || known.len() == 40, "byte {place}");
        assert!(known.iter().all(|event| events.contains(event)));
        assert!(!problems.is_empty(), "byte {place}");
    }
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    three_segments(folder.path());
    let path = folder.path().join("recording.json");
    let text = fs::read_to_string(&path).expect("a description");
    let newer = text.replacen("\"schema_version\": 2", "\"schema_version\": 9", 1);
    assert_ne!(newer, text);
    fs::write(&path, newer).expect("room");
    let error = Recorded::open(folder.path()).expect_err("another version");
    assert!(matches!(error, Error::Version { .. }), "{error}");
    assert!(error.to_string().contains("schema version 9"), "{error}");
    // A segment of another version, honestly listed.
    fs::write(&path, text).expect("room");
    let middle = &segments(folder.path())[1];
    let mut bytes = fs::read(middle).expect("a segment");
    let key = b"unspin.schema_version";
    let place = bytes.windows(key.len()).rposition(|window| window == key);
    // Key, then Thrift's field header and length, then the value's one digit.
    let digit = place.expect("the key") + key.len() + 2;
    assert_eq!(bytes[digit], b'2');
    bytes[digit] = b'9';
    replace(folder.path(), middle, &bytes);
    let error = Recorded::open(folder.path()).expect_err("another version");
    assert!(matches!(error, Error::Version { .. }), "{error}");
}

#[test]
fn what_is_no_recording_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Recorded::open(folder.path()).expect_err("empty");
    assert!(matches!(error, Error::NotARecording { .. }), "{error}");
    let file = folder.path().join("events-000000.parquet");
    fs::write(&file, "text").expect("room");
    let error = Recorded::open(&file).expect_err("a file");
    assert!(error.to_string().contains("directory"), "{error}");
    let error = Recorded::open(Path::new("/nonexistent")).expect_err("nothing");
    assert!(error.to_string().contains("/nonexistent"), "{error}");
    let (found, problems) = read(folder.path());
    assert!(found.is_empty());
    assert!(problems.iter().any(|problem| problem.contains("left out")));
}
