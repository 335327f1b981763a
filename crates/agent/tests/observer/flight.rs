// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flight recorder beside real VMs: what it keeps is explained like any recording.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use unspin_agent::{
    EventMask, Until,
    record::{
        About,
        flight::{self, Desk, News, Triggers},
    },
};
use unspin_analysis::{
    Source,
    explain::attribution::{EVENTS_MAX, Explanation, Options, explain},
    waits::spin_locations::Naming,
};
use unspin_events::Event;
use unspin_recording::{Ended, Recorded, ring::RingOptions};
use unspin_testbed::check;

use crate::vms::{run_for, vm};

const MS: u64 = 1_000_000;

/// What `unspin explain` says of that folder, and what the reader has to say before it.
fn explained(folder: &Path) -> (Explanation, Vec<String>) {
    let mut source = Source::open(folder).expect("a recording");
    let options = Options {
        naming: Naming::default(),
        ipis_seen: source.sees_ipis(),
        minimum_wait_ns: u64::MAX,
        waits_max: 0,
        events_max: EVENTS_MAX,
        keep_slices: false,
    };
    let explanation = explain(&mut source, options);
    (explanation, source.problems)
}

/// The first file of events in a recording.
fn first_segment(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).expect("a recording").flatten();
    let segments = entries.map(|entry| entry.path());
    let mut segments =
        segments.filter(|path| path.extension().is_some_and(|ending| ending == "parquet"));
    let first = segments.next().expect("one");
    segments.fold(first, Ord::min)
}

/// When the first and the last event in the recording happened.
fn span_ns(folder: &Path) -> (u64, u64) {
    let recorded = Recorded::open_readable(folder).expect("a recording");
    recorded.span_ns().expect("events")
}

/// The recording's events from the one time to the other.
fn events_within(folder: &Path, from_ns: u64, to_ns: u64) -> Vec<Event> {
    let recorded = Recorded::open_readable(folder).expect("a recording");
    let mut events: Vec<Event> = recorded.events().collect();
    events.retain(|event| (from_ns..=to_ns).contains(&event.time_ns));
    events
}

/// Two VMs run for 2.6 s, of which the last 2 s are kept; 1.5 s after the beginning somebody sends the signal.
fn fly(folder: &Path) -> Arc<Desk> {
    let options = RingOptions {
        before_ns: 300 * MS,
        after_ns: 200 * MS,
        ..RingOptions::new(2_000 * MS, 64 << 20)
    };
    let signal = Arc::new(AtomicBool::new(false));
    let triggers = Triggers {
        signal: Some(Arc::clone(&signal)),
        soft_lockup: Some("/dev/kmsg".into()),
        ..Triggers::default()
    };
    let events = EventMask::SWITCHES.and(EventMask::PAUSE_LOOPS);
    let mut flight = flight::start(folder, events, About::default(), options, triggers)
        .expect("the testbed's kernel has all it takes");
    let desk = Arc::clone(flight.desk());
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut until = Until::new(Arc::clone(&interrupt), None);
    until.start(None).expect("no command");
    std::thread::scope(|threads| {
        let watching = threads.spawn(move || {
            let ended = flight.watch(&mut until, &mut |_| {});
            flight.stream.finish(ended.expect("the kernel tells"))
        });
        threads.spawn(|| {
            std::thread::sleep(Duration::from_millis(1_500));
            signal.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        run_for(2_600, vec![vm(4), vm(4)]);
        interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        let streamed = watching.join().expect("no panic");
        assert!(streamed.error.is_none(), "{:?}", streamed.error);
        streamed.summary.expect("room");
    });
    desk
}

check!(INTERRUPTED: a_kept_span_of_real_vms_is_explained);
fn a_kept_span_of_real_vms_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().join("ring");
    let desk = fly(&ring);
    let status = desk.status();
    println!("  {status:?}");
    assert!(status.counts.dropped.old_segments > 0);
    assert_eq!(status.counts.unwritten_events, 0);
    assert_eq!(status.counts.spans, 1);
    let news = desk.news();
    let [News::Begun(trigger, kept), News::Whole(whole)] = &news[..] else {
        panic!("a span that began and ended: {news:?}")
    };
    assert_eq!((trigger.reason.as_str(), kept), ("signal", whole));
    for (folder, ended) in [
        (ring.as_path(), Ended::Interrupted),
        (kept, Ended::Finished),
    ] {
        let recorded = Recorded::open_readable(folder).expect("a recording");
        assert_eq!(recorded.manifest().ended, ended);
        let facts = recorded.facts();
        assert_eq!(facts.vms.len(), 2, "{:?}", facts.vms);
        let own = Some(std::process::id());
        assert!(
            facts
                .vms
                .iter()
                .all(|vm| vm.process == own && vm.vcpus.len() == 4)
        );
        let (explanation, problems) = explained(folder);
        println!("  {}: {problems:?}", folder.display());
        let cut = |said: &String| said.starts_with("its beginning is cut");
        assert!(problems.iter().any(cut), "{problems:?}");
        assert_eq!(explanation.vms.len(), 2);
        for (vm, of) in &explanation.vms {
            let spin_ns: u64 = unspin_analysis::explain::cause::Cause::ALL
                .into_iter()
                .map(|cause| of.spin_time.of(cause))
                .sum();
            println!("  VM {vm}: {spin_ns} of {} ns", of.cpu_ns);
            assert!(spin_ns > of.cpu_ns / 10, "four vCPUs of two CPUs wait");
            assert!(spin_ns <= of.cpu_ns);
        }
    }
    // 300 ms were asked for: all that the ring knows of them is in it, and the first segment is needed for that.
    let from_ns = trigger.at_ns - 300 * MS;
    let (first_ns, last_ns) = span_ns(kept);
    println!(
        "  {} ns before, {} ns after",
        trigger.at_ns.saturating_sub(first_ns),
        last_ns.saturating_sub(trigger.at_ns)
    );
    assert!(span_ns(&ring).0 < from_ns, "the ring is too small to tell");
    let asked = events_within(kept, from_ns, last_ns);
    assert!(!asked.is_empty());
    assert!(asked == events_within(&ring, from_ns, last_ns));
    fs::remove_file(first_segment(kept)).expect("it is there");
    assert!(events_within(kept, from_ns, last_ns).len() < asked.len());
    let after_ns = last_ns.saturating_sub(trigger.at_ns);
    // Up to a look at the ring less.
    assert!((150 * MS..400 * MS).contains(&after_ns));
}
