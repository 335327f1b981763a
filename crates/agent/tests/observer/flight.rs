// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flight recorder beside real VMs: what it keeps is explained like any recording.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use unspin_abi::LockKind;
use unspin_agent::{
    EventMask, Until,
    record::{
        About,
        flight::{self, Desk, News, Status, Triggers},
    },
};
use unspin_analysis::{
    Source,
    explain::attribution::{EVENTS_MAX, Explanation, Options, explain},
    waits::spin_locations::Naming,
};
use unspin_events::Event;
use unspin_recording::{Ended, Recorded, ring::RingOptions};
use unspin_scenario::Vm;
use unspin_testbed::check;
use unspin_vmm::{RunOptions, run};

use crate::vms::{loops, scenario, vm};

const MS: u64 = 1_000_000;
/// Of what was before the signal, so much is to be kept.
const BEFORE_NS: u64 = 300 * MS;
/// Of what comes after it, so much.
const AFTER_NS: u64 = 200 * MS;
/// A segment of the ring.
const SEGMENT_NS: u64 = 100 * MS;

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

/// The files of events in a recording, in their order.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a recording").flatten();
    let files = entries.map(|entry| entry.path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "parquet");
    let mut segments: Vec<PathBuf> = files.filter(is_segment).collect();
    segments.sort_unstable();
    segments
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

/// Two VMs run, and the last 2 s are kept. When the ring has begun to forget somebody sends the signal; when the span of that is
/// whole the VMs end. How far the recorder lags behind depends on nothing but the VMs' events: it is served before the vCPUs, of
/// which there are four for each CPU.
fn fly(folder: &Path) -> Arc<Desk> {
    let options = RingOptions {
        segment_ns: SEGMENT_NS,
        before_ns: BEFORE_NS,
        after_ns: AFTER_NS,
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
    let vms = RunOptions::default();
    let stop = Arc::clone(&vms.interrupt);
    std::thread::scope(|threads| {
        let watching = threads.spawn(move || {
            let ended = flight.watch(&mut until, &mut |_| {});
            flight.stream.finish(ended.expect("the kernel tells"))
        });
        threads.spawn(|| {
            wait_until(&desk, |status| status.counts.dropped.old_segments > 0);
            signal.store(true, Ordering::Relaxed);
            wait_until(&desk, |status| status.counts.last_span.is_some());
            stop.store(true, Ordering::Relaxed);
        });
        let running = threads.spawn(move || {
            be_nice();
            run(
                &scenario(7, None, 60_000, vec![barging_vm(), barging_vm()]),
                &vms,
            )
        });
        let ended = running.join().expect("no panic");
        assert!(matches!(ended, Err(unspin_vmm::Error::Interrupted)));
        interrupt.store(true, Ordering::Relaxed);
        let streamed = watching.join().expect("no panic");
        assert!(streamed.error.is_none(), "{:?}", streamed.error);
        streamed.summary.expect("room");
    });
    desk
}

/// This thread, and those that it will make, give way to others: nice 10.
fn be_nice() {
    // SAFETY: no pointers; 0 is the calling thread.
    let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
    assert_eq!(status, 0, "a higher nice is always allowed");
}

/// Its vCPUs wait for a holder that was stopped, and not for one another as under a ticket lock: that is some 80,000 events a
/// second, more than a recorder without the compiler's optimisations takes here.
fn barging_vm() -> Vm {
    Vm {
        lock: LockKind::from_name("test_and_set").expect("there is one"),
        user_work: loops(1_000),
        hold: loops(4_000),
        ..vm(4)
    }
}

/// Waits for it, for half the longest run of the VMs.
fn wait_until(desk: &Desk, is_so: impl Fn(&Status) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so(&desk.status()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
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
            assert!(
                spin_ns > of.cpu_ns / 50,
                "vCPUs wait for holders that were stopped, here for some 12 %"
            );
            assert!(spin_ns <= of.cpu_ns);
        }
    }
    // All that the ring knows of the time that was asked for is in it.
    let (from_ns, end_ns) = (trigger.at_ns - BEFORE_NS, trigger.at_ns + AFTER_NS);
    let (first_ns, last_ns) = span_ns(kept);
    println!(
        "  {} ns before, {} ns after",
        trigger.at_ns.saturating_sub(first_ns),
        last_ns.saturating_sub(trigger.at_ns)
    );
    let (ring_first_ns, ring_last_ns) = span_ns(&ring);
    assert!(
        ring_first_ns < from_ns && end_ns < ring_last_ns,
        "the ring is too small to tell: from {ring_first_ns} to {ring_last_ns}, {from_ns} to {end_ns} is asked for"
    );
    let asked = events_within(kept, from_ns, end_ns);
    assert!(!asked.is_empty());
    assert!(asked == events_within(&ring, from_ns, end_ns));
    // Up to a look at the ring less, and segments are not cut.
    let after_ns = last_ns.saturating_sub(trigger.at_ns);
    assert!((AFTER_NS - 50 * MS..2 * AFTER_NS).contains(&after_ns));
    // No more than that: the first segment is needed for that, and so is one of the last two, of which one may hold what came
    // while the ring was looked at.
    let segments = segments(kept);
    let (early, late) = segments.split_at(segments.len() - 2);
    late.iter()
        .for_each(|path| fs::remove_file(path).expect("it is there"));
    assert!(span_ns(kept).1 < end_ns);
    let asked = events_within(kept, from_ns, end_ns);
    fs::remove_file(&early[0]).expect("it is there");
    assert!(events_within(kept, from_ns, end_ns).len() < asked.len());
}
