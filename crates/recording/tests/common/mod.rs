// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events to write, and segments that were exchanged, for the tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use proptest::prelude::*;
use twox_hash::XxHash64;
use unspin_abi as abi;
use unspin_events::{Event, What, facts::Facts};
use unspin_recording::{Ended, Options, Recorded, Recording, hashes::HASHES};

/// A switch at that time.
pub fn switch(time_ns: u64, thread: u32) -> Event {
    Event {
        time_ns,
        vm: Some(thread % 3),
        vcpu: Some((thread % 4) as u16),
        thread,
        cpu: (time_ns % 2) as u16,
        what: What::SwitchIn {
            previous_thread: thread + 1,
            previous_vm: None,
        },
    }
}

/// Any event that `abi/bpf/events.h` allows: raw arguments are drawn, and what does not decode is drawn again.
pub fn any_event() -> impl Strategy<Value = Event> {
    let small = prop_oneof![
        Just(0u64),
        Just(1),
        0..16u64,
        0..70_000u64,
        Just(u64::from(u32::MAX)),
        Just(u64::MAX),
        any::<u32>().prop_map(u64::from),
        any::<u64>(),
    ];
    let arguments = (small.clone(), small.clone(), small);
    let place = (
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
        any::<u16>(),
        any::<u16>(),
    );
    (1..abi::UNSPIN_EVENT_KINDS, place, arguments).prop_filter_map(
        "arguments that the kind does not allow",
        |(kind, (time_ns, vm, thread, vcpu, cpu), (argument0, argument1, argument2))| {
            Event::decode(&abi::unspin_event {
                time_ns,
                kind,
                vm,
                thread,
                vcpu,
                cpu,
                argument0,
                argument1,
                argument2,
            })
            .ok()
        },
    )
}

/// Segments of so many rows, none merged.
pub fn rows(segment_rows: usize) -> Options {
    Options {
        segment_rows,
        merge_segments: 0,
        ..Options::default()
    }
}

/// A finished recording of those events.
pub fn record(folder: &Path, events: &[Event], options: Options) {
    let mut recording =
        Recording::create(folder, Facts::default(), options).expect("an empty folder");
    recording.append(events).expect("room on the disk");
    recording.finish(Ended::Finished, None).expect("room");
}

/// All events, and everything that was said against them.
pub fn read(folder: &Path) -> (Vec<Event>, Vec<String>) {
    let recorded = Recorded::open(folder).expect("a recording");
    let mut events = recorded.events();
    let all: Vec<Event> = events.by_ref().collect();
    let problems = [recorded.problems().to_vec(), events.problems()].concat();
    (all, problems)
}

/// The segments of a recording, by name.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "parquet"));
    paths.sort();
    paths
}

/// Writes those bytes to the segment and a hash that fits, as somebody would who means harm.
pub fn replace(folder: &Path, segment: &Path, bytes: &[u8]) {
    fs::write(segment, bytes).expect("room");
    let name = segment.file_name().expect("a name").to_string_lossy();
    let hash = XxHash64::oneshot(0, bytes);
    let line = format!("{{\"file\":\"{name}\",\"xxh64\":\"{hash:016x}\"}}\n");
    fs::write(folder.join(HASHES), line).expect("room");
}

/// Reads a recording whose segment `path` has these bytes and a hash that fits. Whether anything was said against it.
pub fn hostile(folder: &Path, path: &Path, bytes: &[u8]) -> bool {
    replace(folder, path, bytes);
    let Ok(recorded) = Recorded::open(folder) else {
        return true; // another version
    };
    let mut events = recorded.events();
    let found: Vec<Event> = events.by_ref().collect();
    assert!(found.is_sorted_by_key(|event| event.time_ns));
    assert!(found.len() as u64 <= recorded.rows() + 1);
    assert!(recorded.rows() <= 4096 * unspin_recording::SEGMENT_ROWS_MAX as u64);
    !recorded.problems().is_empty() || !events.problems().is_empty()
}

/// A folder in memory where there is one: for tests that write thousands of files, each onto the disk.
pub fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}

const FOLDER: &str = "UNSPIN_TEST_FOLDER";

/// Runs one of this file's ignored tests in a process of its own, by way of `through` if that is not empty.
pub fn child(through: &[&str], test: &str, folder: &Path) -> Child {
    let own = env::current_exe().expect("this test").into_os_string();
    let words = through.iter().map(Into::into).chain([own]);
    let words: Vec<OsString> = words.collect();
    Command::new(&words[0])
        .args(&words[1..])
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child")
}

/// In such a process: the folder that it was given.
pub fn folder_of_parent() -> PathBuf {
    env::var_os(FOLDER).expect("run by its parent").into()
}
