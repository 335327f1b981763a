// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a ring keeps: always its end, never more than it may, and what is gone is counted and told.

mod common;

use std::{fs, path::Path};

use common::{quick_folder, read, segments, switch};
use proptest::prelude::*;
use unspin_events::{Event, facts::Facts};
use unspin_recording::{
    Ended, Recorded,
    ring::{Kept, Ring, RingOptions, Trigger},
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn at(reason: &str, at_ns: u64) -> Trigger {
    Trigger {
        reason: reason.into(),
        at_ns,
        unix_ns: 1_795_000_000 * SECOND + at_ns,
        ..Trigger::default()
    }
}

fn begin(folder: &Path, options: RingOptions) -> Ring {
    Ring::begin(folder, Facts::default(), options, at("earlier", 0)).expect("an empty folder")
}

/// Event number `number`: one a millisecond.
fn numbered(number: u64) -> Event {
    switch(number * MS, (number % 7) as u32 + 1)
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("the folder").flatten();
    let files = entries.filter_map(|entry| entry.metadata().ok());
    files
        .filter(|file| file.is_file())
        .map(|file| file.len())
        .sum()
}

/// The numbers of events that are there; they are without a gap.
#[track_caller]
fn numbers(folder: &Path) -> Option<(u64, u64)> {
    let (events, problems) = read(folder);
    let numbers: Vec<u64> = events.iter().map(|event| event.time_ns / MS).collect();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "{problems:?}");
    let expected: Vec<Event> = (first..=last).map(numbered).collect();
    assert_eq!(events, expected);
    Some((first, last))
}

/// One event a millisecond until `end_ms`, looked at every 20 ms.
fn feed(ring: &mut Ring, from_ms: u64, end_ms: u64) {
    for time_ms in from_ms..end_ms {
        ring.append(&[numbered(time_ms)]).expect("room");
        if time_ms % 20 == 19 {
            ring.tick((time_ms + 1) * MS).expect("room");
        }
    }
}

/// What a reader is told before the events.
fn told(folder: &Path) -> String {
    let recorded = Recorded::open_readable(folder).expect("a recording");
    recorded.problems().join("\n")
}

/// So many events were before what is there.
fn cut_by(events: u64) -> String {
    format!("its beginning is cut: {events} events before it")
}

#[test]
fn the_last_seconds_are_there_and_the_rest_is_told() {
    let folder = quick_folder();
    let mut ring = begin(folder.path(), RingOptions::new(4 * SECOND, 1 << 30));
    feed(&mut ring, 0, 10_000);
    let (first, last) = numbers(folder.path()).expect("events");
    // Segments of 0.5 s: nothing older than 4 s and a segment, and no more than one waits.
    assert!((5_400..=6_000).contains(&first), "{first}");
    assert!(last >= 9_400, "{last}");
    let counts = ring.counts().clone();
    assert_eq!(counts.dropped.events, first);
    assert!(counts.dropped.old_segments > 8 && counts.dropped.large_segments == 0);
    assert_eq!(counts.unwritten_events, 0);
    let summary = ring.finish(Ended::Interrupted, None).expect("room");
    let (first, last) = numbers(folder.path()).expect("events");
    assert_eq!(
        (summary.summary.manifest.events, last),
        (last - first + 1, 9_999)
    );
    let recorded = Recorded::open_readable(folder.path()).expect("a recording");
    let told = recorded.problems().join("\n");
    let cut = format!("its beginning is cut: {first} events before it were dropped on purpose");
    assert!(told.contains(&cut), "{told}");
    assert_eq!(recorded.problems().len(), 1, "{told}");
    assert_eq!(recorded.manifest().ended, Ended::Interrupted);
}

/// Its writer was behind: events of one second were written a second later. What is kept goes by the events' own times.
#[test]
fn what_was_written_late_is_not_later() {
    let folder = quick_folder();
    let options = RingOptions {
        before_ns: SECOND,
        segment_ns: 100 * MS,
        ..RingOptions::new(60 * SECOND, 1 << 30)
    };
    let mut ring = begin(folder.path(), options);
    for ten in 0..20 {
        let events: Vec<Event> = (ten * 100..(ten + 1) * 100).map(numbered).collect();
        ring.append(&events).expect("room");
        for late_ms in [1_000, 1_100] {
            ring.tick((ten * 100 + late_ms) * MS).expect("room");
        }
    }
    ring.keep(at("signal", 2_000 * MS)).expect("room");
    // Neither is what is written after the trigger.
    let older: Vec<Event> = (0..20).map(numbered).collect();
    ring.append(&older).expect("room");
    ring.tick(3_200 * MS).expect("room");
    ring.tick(3_400 * MS).expect("room");
    let kept = fs::read_dir(folder.path().join("kept")).expect("kept spans");
    let kept: Vec<_> = kept.flatten().map(|entry| entry.path()).collect();
    // Of 0 to 1999 those from 1000 on, and the rest of the segment in which that is.
    let (first, last) = numbers(&kept[0]).expect("events");
    assert!((900..=1_000).contains(&first), "{first}");
    assert_eq!(last, 1_999);
    // The ring has them all, but whoever reads the span learns that it begins later.
    assert_eq!(ring.counts().dropped.events, 0);
    assert!(
        told(&kept[0]).contains(&cut_by(first)),
        "{}",
        told(&kept[0])
    );
}

#[test]
fn bytes_count_with_everything_beside_the_events() {
    let folder = quick_folder();
    let options = RingOptions::new(3_600 * SECOND, 64 << 10);
    let mut ring = begin(folder.path(), options.clone());
    for until in 1..=60 {
        feed(&mut ring, (until - 1) * 500, until * 500);
        assert!(bytes_of(folder.path()) <= options.bytes_max, "at {until}");
    }
    let counts = ring.counts();
    assert!(counts.dropped.large_segments > 10 && counts.dropped.old_segments == 0);
    let (first, _) = numbers(folder.path()).expect("events");
    assert_eq!(counts.dropped.events, first);
    assert!(ring.extent().bytes <= options.bytes_max && ring.extent().bytes > 40 << 10);
}

/// Nothing helps: the ring is empty, and says how many events it could not keep.
#[test]
fn a_segment_larger_than_the_ring_may_be_is_not_kept() {
    let folder = quick_folder();
    let options = RingOptions {
        segment_rows: 5_000,
        ..RingOptions::new(60 * SECOND, 2_000)
    };
    let mut ring = begin(folder.path(), options);
    feed(&mut ring, 0, 5_000);
    assert!(segments(folder.path()).is_empty());
    assert_eq!(ring.extent().events, 0);
    assert_eq!(ring.counts().dropped.events, ring.counts().events_written);
    ring.finish(Ended::Finished, None).expect("room");
    // It is whole, and empty: that is no damage.
    let recorded = Recorded::open_readable(folder.path()).expect("a recording");
    assert_eq!((recorded.rows(), recorded.problems().len()), (0, 1));
}

#[test]
fn less_than_a_segment_can_be_kept() {
    let folder = quick_folder();
    let options = RingOptions {
        segment_ns: SECOND,
        ..RingOptions::new(50 * MS, 1 << 30)
    };
    let mut ring = begin(folder.path(), options);
    feed(&mut ring, 0, 1_040);
    assert_eq!(segments(folder.path()).len(), 1);
    feed(&mut ring, 1_040, 1_200);
    assert!(segments(folder.path()).is_empty());
    feed(&mut ring, 1_200, 2_080);
    assert_eq!(segments(folder.path()).len(), 1);
}

/// The clock of ticks is monotonic; if it is set all the same, nothing is kept for longer than it may, and nothing falls over.
#[test]
fn a_clock_that_is_set_drops_too_much_rather_than_too_little() {
    let folder = quick_folder();
    let mut ring = begin(folder.path(), RingOptions::new(4 * SECOND, 1 << 30));
    feed(&mut ring, 0, 3_000);
    let before = segments(folder.path()).len();
    assert!(before >= 4);
    ring.tick(0).expect("room");
    assert_eq!(segments(folder.path()).len(), before, "back");
    ring.tick(3_600 * SECOND).expect("room");
    assert!(segments(folder.path()).len() <= 1, "forward");
    // Back again: new ones come, and the bytes still hold.
    feed(&mut ring, 3_000, 6_000);
    assert!(numbers(folder.path()).is_some());
}

#[test]
fn what_is_around_a_trigger_outlives_the_ring() {
    let folder = quick_folder();
    let options = RingOptions {
        before_ns: 2 * SECOND,
        after_ns: SECOND,
        ..RingOptions::new(4 * SECOND, 1 << 30)
    };
    let mut ring = begin(folder.path(), options);
    feed(&mut ring, 0, 6_000);
    let trigger = Trigger {
        subject: "web-3".into(),
        ..at("spin-share", 6 * SECOND)
    };
    let Kept::Begun(kept) = ring.keep(trigger).expect("room") else {
        panic!("there is room for it")
    };
    assert!(kept.starts_with(folder.path().join("kept")));
    // A kill now leaves what was before it.
    let (first, last) = numbers(&kept).expect("events");
    assert!(
        (3_400..=4_000).contains(&first) && last >= 5_400,
        "{first} to {last}"
    );
    feed(&mut ring, 6_000, 20_000);
    assert!(!ring.is_keeping());
    assert_eq!(ring.counts().last_span.as_deref(), Some(kept.as_path()));
    let (first, last) = numbers(&kept).expect("events");
    assert!(
        (3_400..=4_000).contains(&first) && (6_980..=7_020).contains(&last),
        "{first} to {last}"
    );
    let recorded = Recorded::open_readable(&kept).expect("a recording");
    assert_eq!(recorded.manifest().ended, Ended::Finished);
    let told = told(&kept);
    assert!(told.contains(&cut_by(first)), "{told}");
    assert!(told.contains("kept for spin-share, web-3 at 6 s"), "{told}");
    assert_eq!(recorded.problems().len(), 2, "{told}");
    // The ring has long dropped it.
    assert!(numbers(folder.path()).expect("events").0 > 15_000);
}

#[test]
fn a_trigger_within_a_span_makes_it_longer_and_too_many_are_refused() {
    let folder = quick_folder();
    let options = RingOptions {
        before_ns: SECOND,
        after_ns: SECOND,
        spans_max: 2,
        ..RingOptions::new(4 * SECOND, 1 << 30)
    };
    let mut ring = begin(folder.path(), options);
    feed(&mut ring, 0, 2_000);
    let Kept::Begun(kept) = ring.keep(at("signal", 2 * SECOND)).expect("room") else {
        panic!("there is room for it")
    };
    let mut last_ns = 2 * SECOND;
    // Again and again: it ends when it is as long as the ring.
    for time_ms in (2_500..9_000).step_by(500) {
        feed(&mut ring, time_ms - 500, time_ms);
        if ring.is_keeping() {
            last_ns = time_ms * MS;
            let again = ring.keep(at("signal", last_ns)).expect("room");
            assert_eq!(again, Kept::Joined(kept.clone()));
        }
    }
    assert_eq!(last_ns, 5_500 * MS);
    let (first, last) = numbers(&kept).expect("events");
    assert!(
        first <= 1_000 && (5_980..=6_020).contains(&last),
        "{first} to {last}"
    );
    let triggers = &Recorded::open(&kept)
        .expect("a recording")
        .manifest()
        .kept
        .clone();
    let triggers = &triggers.as_ref().expect("it says why").triggers;
    assert_eq!(triggers.len() as u64, 1 + ring.counts().joined_triggers);
    assert!(matches!(
        ring.keep(at("signal", 9 * SECOND)),
        Ok(Kept::Begun(_))
    ));
    feed(&mut ring, 9_000, 12_000);
    assert_eq!(
        ring.keep(at("signal", 12 * SECOND)).expect("told"),
        Kept::TooMany
    );
    let counts = ring.counts();
    assert_eq!((counts.spans, counts.refused_triggers), (2, 1));
}

#[test]
fn a_span_that_grows_is_ended_with_the_ring() {
    let folder = quick_folder();
    let mut ring = begin(folder.path(), RingOptions::new(60 * SECOND, 1 << 30));
    feed(&mut ring, 0, 1_010);
    let Kept::Begun(kept) = ring.keep(at("signal", 1_010 * MS)).expect("room") else {
        panic!("there is room for it")
    };
    feed(&mut ring, 1_010, 1_500);
    ring.finish(Ended::Interrupted, None).expect("room");
    assert_eq!(numbers(&kept), Some((0, 1_499)));
    let recorded = Recorded::open(&kept).expect("a recording");
    assert_eq!(recorded.manifest().ended, Ended::Interrupted);
}

#[test]
fn an_earlier_ring_is_kept_and_foreign_files_are_nobodys_to_touch() {
    let folder = quick_folder();
    let options = RingOptions {
        spans_max: 1,
        ..RingOptions::new(60 * SECOND, 1 << 30)
    };
    let again = |at_ns| {
        Ring::begin(
            folder.path(),
            Facts::default(),
            options.clone(),
            at("earlier", at_ns),
        )
    };
    let mut ring = again(0).expect("empty");
    feed(&mut ring, 0, 3_000);
    let error = again(4 * SECOND).expect_err("one writes to it");
    assert!(
        error.to_string().contains("another flight recorder"),
        "{error}"
    );
    drop(ring); // as killed
    let ring = again(5 * SECOND).expect("an earlier ring");
    assert_eq!(
        (ring.counts().spans, ring.counts().refused_triggers),
        (1, 0)
    );
    let mut kept = fs::read_dir(folder.path().join("kept"))
        .expect("spans")
        .flatten();
    let kept = kept.next().expect("one").path();
    assert!(numbers(&kept).expect("events").1 >= 2_100);
    assert!(segments(folder.path()).is_empty());
    // Nothing was written: nothing to keep.
    drop(ring);
    let mut ring = again(6 * SECOND).expect("an empty one");
    assert_eq!(ring.counts().refused_triggers, 0);
    feed(&mut ring, 6_000, 9_000);
    drop(ring);
    let ring = again(9 * SECOND).expect("another one, which has no room");
    assert_eq!(ring.counts().refused_triggers, 1);
    drop(ring);
    fs::write(folder.path().join("notes.txt"), "mine").expect("room");
    let error = again(10 * SECOND).expect_err("somebody's file");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    let other = quick_folder();
    common::record(other.path(), &[numbered(0)], common::rows(10));
    let error = Ring::may_begin(other.path()).expect_err("a recording");
    assert!(error.to_string().contains("must be empty"), "{error}");
}

/// How a ring is fed: by so many events at a time, with the clock going so far after each.
#[derive(Clone, Debug)]
struct Step {
    events: u64,
    ms: u64,
    trigger: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..400u64, 0..700u64, prop::bool::weighted(0.05));
    let step = step.prop_map(|(events, ms, trigger)| Step {
        events,
        ms,
        trigger,
    });
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After every step: what is there is a contiguous end of what came, within both limits, and every event is there, waits, or
    /// is counted as dropped. Whatever was kept is contiguous, too, and stays.
    #[test]
    fn a_ring_is_always_an_end_within_its_limits(
        steps in steps(),
        keep_ms in 1..5_000u64,
        bytes_max in 1_000..120_000u64,
        segment_rows in 1..600usize,
    ) {
        let folder = quick_folder();
        let options = RingOptions {
            segment_rows,
            before_ns: 500 * MS,
            after_ns: 300 * MS,
            spans_max: 2,
            ..RingOptions::new(keep_ms * MS, bytes_max)
        };
        let mut ring = begin(folder.path(), options.clone());
        let (mut came, mut now_ms) = (0, 0);
        for step in steps {
            let events: Vec<Event> = (came..came + step.events).map(numbered).collect();
            came += step.events;
            ring.append(&events).expect("room");
            now_ms += step.ms;
            ring.tick(now_ms * MS).expect("room");
            if step.trigger {
                ring.keep(at("signal", now_ms * MS)).expect("room");
            }
            let there = numbers(folder.path());
            let extent = ring.extent();
            let counts = ring.counts();
            prop_assert!(extent.bytes <= bytes_max || extent.segments == 0);
            prop_assert_eq!(bytes_of(folder.path()), extent.bytes);
            prop_assert_eq!(counts.dropped.events + extent.events, counts.events_written);
            prop_assert!(counts.events_written <= came);
            match there {
                None => prop_assert_eq!(extent.events, 0),
                Some((first, last)) => {
                    prop_assert_eq!(first, counts.dropped.events);
                    prop_assert_eq!(last + 1, counts.events_written);
                }
            }
        }
        ring.finish(Ended::Finished, None).expect("room");
        if let Some((_, last)) = numbers(folder.path()) {
            prop_assert_eq!(last + 1, came, "the end is there");
        }
        let recorded = Recorded::open(folder.path()).expect("a recording");
        let dropped = recorded.manifest().ring.as_ref().expect("a ring").dropped;
        prop_assert_eq!(dropped.events + recorded.manifest().events, came);
        if let Ok(kept) = fs::read_dir(folder.path().join("kept")) {
            for span in kept.flatten() {
                numbers(&span.path());
            }
        }
    }
}

#[test]
fn losses_are_those_of_what_is_there() {
    let folder = quick_folder();
    let mut ring = begin(folder.path(), RingOptions::new(2 * SECOND, 1 << 30));
    let lost = |time_ms: u64, events| Event::lost(time_ms * MS, events, 1);
    ring.append(&[lost(5, 1_000)]).expect("room");
    feed(&mut ring, 10, 5_000);
    ring.append(&[lost(5_000, 3)]).expect("room");
    feed(&mut ring, 5_000, 6_000);
    ring.finish(Ended::Finished, None).expect("room");
    let recorded = Recorded::open(folder.path()).expect("a recording");
    let lost = recorded
        .facts()
        .lost
        .values()
        .copied()
        .collect::<Vec<u64>>();
    assert_eq!(lost, [3]);
}
