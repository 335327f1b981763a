// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rings that are killed, and rings on a full disk.

mod common;

use std::{
    ffi::CString,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use common::{child, folder_of_parent, quick_folder, read};
use unspin_events::{Event, What, facts::Facts};
use unspin_recording::{
    Ended, Recorded,
    ring::{Kept, Ring, RingOptions, Trigger},
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Event number `number`, at that time.
fn numbered(number: u64, time_ns: u64) -> Event {
    Event {
        thread: number as u32,
        ..common::switch(time_ns, 1)
    }
}

fn trigger(at_ns: u64) -> Trigger {
    Trigger {
        reason: "signal".into(),
        at_ns,
        unix_ns: 1_795_000_000 * SECOND + at_ns,
        ..Trigger::default()
    }
}

/// Of what is there: the first and last number, which nothing between lacks, and the last time.
#[track_caller]
fn there(folder: &Path) -> Option<(u32, u32, u64)> {
    let (events, problems) = read(folder);
    let numbers: Vec<u32> = events.iter().map(|event| event.thread).collect();
    let (first, last) = (events.first()?, events.last()?);
    let expected: Vec<u32> = (first.thread..=last.thread).collect();
    assert_eq!(numbers, expected, "{problems:?}");
    Some((first.thread, last.thread, last.time_ns))
}

/// Writes into the folder as fast as `options` and its clock ask, and says after each tick what the time was.
fn write_until_killed(options: RingOptions, pause: Duration, trigger_every: u64) {
    let begin = Instant::now();
    let now_ns = || begin.elapsed().as_nanos() as u64;
    let folder = folder_of_parent();
    let mut ring = Ring::begin(&folder, Facts::default(), options, trigger(0)).expect("empty");
    let (mut number, mut ticks) = (0, 0);
    while begin.elapsed() < Duration::from_secs(60) {
        let at_ns = now_ns();
        let events: Vec<Event> = (number..number + 9)
            .map(|number| numbered(number, at_ns))
            .collect();
        number += 9;
        ring.append(&events).expect("room");
        ring.tick(at_ns).expect("room");
        ticks += 1;
        if ticks % trigger_every == 0 {
            ring.keep(trigger(at_ns)).expect("room");
        }
        println!("at {at_ns}");
        thread::sleep(pause);
    }
}

/// Kills the writer so long after its first line; the last time that it said.
fn kill_after(mut writer: Child, time: Duration) -> u64 {
    let output = BufReader::new(writer.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map_while(Result::ok);
    let mut said_ns = None;
    let mut begun: Option<Instant> = None;
    for line in lines.by_ref() {
        if let Some(at_ns) = line.strip_prefix("at ") {
            said_ns = Some(at_ns.parse().expect("a number"));
            if begun.get_or_insert_with(Instant::now).elapsed() >= time {
                break;
            }
        }
    }
    writer.kill().expect("SIGKILL");
    // What it said until it was dead.
    for line in lines {
        if let Some(Ok(at_ns)) = line.strip_prefix("at ").map(str::parse) {
            said_ns = Some(at_ns);
        }
    }
    writer.wait().expect("ended");
    said_ns.expect("the child ended early")
}

#[test]
fn kill_9_at_any_moment_costs_a_second_at_most() {
    let killed = |delay_ms| {
        let folder = quick_folder();
        let writer = child(&[], "writes_as_a_recorder_does", folder.path());
        let said_ns = kill_after(writer, Duration::from_millis(delay_ms));
        let (_, _, last_ns) = there(folder.path()).expect("events");
        println!("{delay_ms} ms: {} ms are missing", (said_ns - last_ns) / MS);
        assert!(last_ns + SECOND >= said_ns, "{last_ns} of {said_ns}");
        // Its successor keeps it.
        let options = RingOptions::new(60 * SECOND, 1 << 30);
        let ring = Ring::begin(folder.path(), Facts::default(), options, trigger(0));
        assert_eq!(ring.expect("an earlier ring").counts().spans, 1);
    };
    thread::scope(|threads| {
        for delay_ms in (1_100..3_500).step_by(200) {
            threads.spawn(move || killed(delay_ms));
        }
    });
}

#[test]
#[ignore = "a child of the test above"]
fn writes_as_a_recorder_does() {
    let options = RingOptions::new(60 * SECOND, 1 << 30);
    write_until_killed(options, Duration::from_millis(20), u64::MAX);
}

/// Segments of 2 ms, of which 30 ms are kept: a kill meets every step of writing, dropping and keeping.
#[test]
fn kill_9_in_the_middle_of_anything_leaves_recordings() {
    let killed = |delay_us| {
        let folder = quick_folder();
        let writer = child(&[], "writes_in_haste", folder.path());
        kill_after(writer, Duration::from_micros(delay_us));
        there(folder.path());
        let spans = fs::read_dir(folder.path().join("kept"))
            .into_iter()
            .flatten();
        for span in spans.flatten() {
            // A folder without a description is one that had just been made.
            if span.path().join("recording.json").exists() {
                there(&span.path());
            }
        }
        let options = RingOptions {
            spans_max: 1_000,
            ..RingOptions::new(60 * SECOND, 1 << 30)
        };
        let ring = Ring::begin(folder.path(), Facts::default(), options, trigger(0));
        ring.expect("an earlier ring");
    };
    for batch in 0..20 {
        thread::scope(|threads| {
            for place in 0..3 {
                let delay_us = 20_000 + 1_733 * (3 * batch + place);
                threads.spawn(move || killed(delay_us));
            }
        });
    }
}

#[test]
#[ignore = "a child of the test above"]
fn writes_in_haste() {
    let options = RingOptions {
        segment_ns: 2 * MS,
        before_ns: 10 * MS,
        after_ns: 5 * MS,
        spans_max: 1_000,
        ..RingOptions::new(30 * MS, 1 << 30)
    };
    write_until_killed(options, Duration::from_micros(300), 40);
}

/// Without a way to a small disk of its own this machine cannot show it: `--map-root-user` takes user namespaces.
#[test]
fn on_a_full_disk_the_oldest_go_and_recording_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let through = ["unshare", "--mount", "--map-root-user"];
    let done = child(&through, "fills_a_small_disk", folder.path()).wait_with_output();
    let done = done.expect("ended");
    let said = String::from_utf8_lossy(&done.stdout);
    if !said.contains("a small disk is mounted") {
        println!("not shown: no tmpfs can be mounted here");
        return;
    }
    assert!(done.status.success(), "{said}");
}

#[test]
#[ignore = "a child of the test above"]
fn fills_a_small_disk() {
    let folder = folder_of_parent();
    mount_small(&folder);
    println!("a small disk is mounted");
    let options = RingOptions {
        segment_ns: 100 * MS,
        before_ns: 200 * MS,
        after_ns: 100 * MS,
        ..RingOptions::new(3_600 * SECOND, 1 << 40)
    };
    let ring_folder = folder.join("ring");
    let mut ring = Ring::begin(&ring_folder, Facts::default(), options, trigger(0)).expect("room");
    let mut number = 0;
    let mut feed = |ring: &mut Ring, ticks: u64, count: u64| {
        for _ in 0..ticks {
            let events: Vec<Event> = (number..number + count)
                .map(|number| numbered(number, number * 40_000))
                .collect();
            number += count;
            ring.append(&events).expect("a full disk is no error");
            ring.tick(number * 40_000).expect("a full disk is no error");
        }
        number
    };
    // It fills up: the oldest go, the newest are there.
    let came = feed(&mut ring, 800, 500);
    let (first, last, _) = there(&ring_folder).expect("events");
    let counts = ring.counts().clone();
    assert!(counts.dropped.disk_full_segments > 50, "{counts:?}");
    assert_eq!(counts.unwritten_events, 0);
    assert_eq!(u64::from(first), counts.dropped.events);
    assert!(u64::from(last) + 5_000 > came && u64::from(last - first) > 20_000);
    // Somebody else takes all that is left, and what the ring gives up is less than it wants.
    drop(ring.keep(trigger(came * 40_000)).expect("told"));
    let mut greedy = fs::File::create(folder.join("greedy")).expect("a name");
    for round in 0..40 {
        take_all(&mut greedy);
        feed(&mut ring, 3, 1_000 + 200 * round);
    }
    let counts = ring.counts().clone();
    assert!(counts.unwritten_events > 10_000, "{counts:?}");
    // There is room again.
    drop(greedy);
    fs::remove_file(folder.join("greedy")).expect("there");
    let came = feed(&mut ring, 100, 500);
    let unwritten = ring.counts().unwritten_events;
    assert!(matches!(
        ring.keep(trigger(came * 40_000)),
        Ok(Kept::Begun(_) | Kept::Joined(_))
    ));
    feed(&mut ring, 10, 500);
    ring.finish(Ended::Finished, None).expect("room");
    let (events, problems) = read(&ring_folder);
    let lost: u64 = events.iter().filter_map(lost_in).sum();
    assert_eq!(lost, ring_lost(&ring_folder), "{problems:?}");
    assert!(
        lost > 0 && lost <= unwritten,
        "{lost} of {unwritten}: {problems:?}"
    );
    let written = events.iter().filter(|event| lost_in(event).is_none());
    let numbers: Vec<u32> = written.map(|event| event.thread).collect();
    assert!(numbers.is_sorted() && u64::from(*numbers.last().expect("events")) + 1 == came + 5_000);
    let told = problems
        .iter()
        .any(|problem| problem.contains("events were lost"));
    assert!(told, "{problems:?}");
}

fn lost_in(event: &Event) -> Option<u64> {
    match event.what {
        What::Lost { events, .. } => Some(events),
        _ => None,
    }
}

fn ring_lost(folder: &Path) -> u64 {
    let recorded = Recorded::open(folder).expect("a recording");
    recorded.facts().lost.values().sum()
}

/// Writes until there is no room.
fn take_all(greedy: &mut fs::File) {
    use std::io::Write;
    while greedy.write_all(&[1; 4096]).is_ok() {}
}

/// A disk of 1 MiB, in this process's own view of the file system.
fn mount_small(folder: &Path) {
    let text = |text: &str| CString::new(text).expect("no zero in it");
    let (tmpfs, size) = (text("tmpfs"), text("size=1m"));
    let target = text(folder.to_str().expect("UTF-8"));
    // SAFETY: four strings that live until the call returns.
    let mounted = unsafe {
        libc::mount(
            tmpfs.as_ptr(),
            target.as_ptr(),
            tmpfs.as_ptr(),
            0,
            size.as_ptr().cast(),
        )
    };
    assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
}
