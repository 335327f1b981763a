// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that end without being asked: killed, or without room.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    thread,
    time::{Duration, Instant},
};

use common::{child, folder_of_parent, read, segments, switch};
use unspin_events::{Event, facts::Facts};
use unspin_recording::{Ended, Error, Options, Recorded, Recording};

const FILE_LIMIT_BYTES: u64 = 16 << 10;

#[test]
fn after_kill_9_everything_up_to_the_last_segment_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = child(&[], "writes_until_it_is_killed", folder.path());
    let output = BufReader::new(writer.stdout.take().expect("a pipe"));
    let mut acknowledged = 0;
    for line in output.lines().map_while(Result::ok) {
        if let Some(events) = line.strip_prefix("written ") {
            acknowledged = events.parse().expect("a number");
            if acknowledged > 2_000 {
                break;
            }
        }
    }
    writer.kill().expect("SIGKILL");
    writer.wait().expect("ended");
    assert!(acknowledged > 2_000, "the child ended early");
    let (found, problems) = read(folder.path());
    let expected: Vec<Event> = (0..found.len() as u64)
        .map(|time| switch(time, 9))
        .collect();
    assert_eq!(found, expected);
    assert!(
        found.len() >= acknowledged,
        "{} of {acknowledged}",
        found.len()
    );
    let said = problems
        .iter()
        .any(|problem| problem.contains("ended without being asked"));
    assert!(said, "{problems:?}");
}

#[test]
#[ignore = "a child of the test above"]
fn writes_until_it_is_killed() {
    let options = Options {
        segment_ns: 5_000_000,
        merge_segments: 4,
        ..Options::default()
    };
    let mut recording =
        Recording::create(&folder_of_parent(), Facts::default(), options).expect("empty");
    let begin = Instant::now();
    let mut time_ns = 0;
    while begin.elapsed() < Duration::from_secs(60) {
        let events: Vec<Event> = (time_ns..time_ns + 37)
            .map(|time| switch(time, 9))
            .collect();
        time_ns += 37;
        recording.append(&events).expect("room");
        recording
            .tick(begin.elapsed().as_nanos() as u64)
            .expect("room");
        println!("written {}", recording.events_written());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn without_room_everything_before_stays_and_the_end_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = child(&[], "has_no_room", folder.path())
        .wait_with_output()
        .expect("ended");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stdout)
    );
    let names: Vec<_> = segments(folder.path());
    assert_eq!(names.len(), 3);
    assert_eq!(
        fs::read_dir(folder.path()).expect("there").count(),
        5, // with the description and the hashes
        "nothing half written"
    );
    let (found, problems) = read(folder.path());
    let expected: Vec<Event> = (0..30).map(|time| switch(time, 9)).collect();
    assert_eq!(found, expected);
    let recorded = Recorded::open(folder.path()).expect("a recording");
    assert_eq!(recorded.manifest().ended, Ended::DiskFull);
    let said = |text: &str| problems.iter().any(|problem| problem.contains(text));
    assert!(
        said("5000 events at the end could not be written"),
        "{problems:?}"
    );
    assert!(said("File too large"), "{problems:?}");
}

#[test]
#[ignore = "a child of the test above"]
fn has_no_room() {
    let limit = libc::rlimit {
        rlim_cur: FILE_LIMIT_BYTES,
        rlim_max: FILE_LIMIT_BYTES,
    };
    // SAFETY: a signal number and a constant; a live struct; both calls touch nothing else.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    let options = Options {
        segment_ns: 0,
        ..Options::default()
    };
    let mut recording =
        Recording::create(&folder_of_parent(), Facts::default(), options).expect("empty");
    for segment in 0..3 {
        let events: Vec<Event> = (10 * segment..10 * segment + 10)
            .map(|time| switch(time, 9))
            .collect();
        recording.append(&events).expect("room");
        recording.tick(segment).expect("room");
    }
    let many: Vec<Event> = (0..5_000u64)
        .map(|index| switch(index.wrapping_mul(0x9e37_79b9_7f4a_7c15), index as u32))
        .collect();
    recording.append(&many).expect("it still waits");
    let error = recording.tick(10).expect_err("no room");
    assert!(error.is_disk_full(), "{error}");
    let again = recording.append(&[]).expect_err("nothing more");
    assert!(matches!(again, Error::AfterError { .. }));
    recording
        .finish(Ended::DiskFull, Some(error.to_string()))
        .expect("room for the description");
}
