// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use unspin_events::GuestMode;

const WINDOW_NS: u32 = 1_000;

fn exit(time_ns: u64, vcpu: u16, rip: u64, inside_ns: u32, other_exits: u16) -> Event {
    Event {
        time_ns,
        vm: Some(0),
        vcpu: Some(vcpu),
        thread: 10 + u32::from(vcpu),
        cpu: 0,
        what: What::PauseExit {
            guest_rip: Some(rip),
            mode: Some(GuestMode::Kernel),
            window: Some(200),
            inside_ns,
            other_exits,
            interrupt_exits: 3,
        },
    }
}

fn entry(time_ns: u64, vcpu: u16, handling_ns: u64) -> Event {
    Event {
        what: What::PauseEntry {
            outside_ns: 50_000,
            handling_ns,
        },
        ..exit(time_ns, vcpu, 0, 0, 0)
    }
}

fn waits(events: &[Event]) -> VmWaits {
    let mut windows = WindowTimes::default();
    events.iter().for_each(|event| windows.see(event));
    let mut waits = SpinWaits::new(&windows);
    events.iter().for_each(|event| waits.see(event));
    waits.finish().remove(&0).unwrap_or_default()
}

/// Lengths by bucket.
fn lengths(waits: &VmWaits) -> Vec<(usize, u64, f64)> {
    (0..64)
        .filter(|&bucket| waits.histogram.count(bucket) > 0)
        .map(|bucket| {
            (
                bucket,
                waits.histogram.count(bucket),
                waits.histogram.time_ns(bucket),
            )
        })
        .collect()
}

#[test]
fn a_run_at_one_place_is_one_wait_on_the_cpu() {
    let found = waits(&[
        exit(10_000, 0, 7, 90_000, 5), // worked, then spun: one window of it
        entry(60_000, 0, 300),         // 50,000 ns off the CPU are not in it
        exit(61_000, 0, 7, WINDOW_NS, 0),
        entry(62_000, 0, 200),
        exit(63_500, 0, 7, 1_500, 0), // a host interrupt took some of its window
    ]);
    assert_eq!(
        lengths(&found),
        [(11, 1, 1_000.0 + 300.0 + 1_000.0 + 200.0 + 1_500.0)]
    );
    assert_eq!(
        (found.exits, found.spinning_ns, found.handling_ns),
        (3, 3_500, 500)
    );
}

#[test]
fn another_place_another_exit_or_work_between_begin_another_wait() {
    let found = waits(&[
        exit(1_000, 0, 7, WINDOW_NS, 0),
        exit(2_000, 0, 8, WINDOW_NS, 0),  // another place
        exit(3_000, 0, 8, WINDOW_NS, 1),  // it left the guest for another reason
        exit(9_000, 0, 8, 2_001, 0),      // it worked
        exit(9_100, 1, 8, WINDOW_NS, 0),  // another vCPU
        exit(10_000, 0, 8, WINDOW_NS, 0), // goes on
    ]);
    assert_eq!(found.histogram.waits(), 5);
    assert_eq!(lengths(&found), [(9, 4, 4_000.0), (10, 1, 2_000.0)]);
    assert_eq!(found.exits, 6);
}

#[test]
fn losses_break_waits_and_are_told() {
    let lost = Event {
        vm: None,
        vcpu: None,
        what: What::Lost {
            events: 1,
            lost_kind: 4,
        },
        ..exit(1_500, 0, 0, 0, 0)
    };
    let found = waits(&[
        exit(1_000, 0, 7, WINDOW_NS, 0),
        lost,
        exit(2_500, 0, 7, WINDOW_NS, 0),
    ]);
    assert_eq!((found.histogram.waits(), found.broken_by_losses), (2, 1));
}

#[test]
fn windows_are_told_apart() {
    let mut wide = exit(5_000, 0, 7, 8_000, 0);
    let What::PauseExit { window, .. } = &mut wide.what else {
        panic!("an exit")
    };
    *window = Some(1_600);
    let events = [exit(1_000, 0, 7, WINDOW_NS, 0), wide];
    assert_eq!(
        lengths(&waits(&events)),
        [(13, 1, 9_000.0)],
        "it grew during the wait"
    );
    let mut windows = WindowTimes::default();
    events.iter().for_each(|event| windows.see(event));
    assert_eq!(windows.shortest_ns(0), Some(1_000));
    assert_eq!(windows.shortest_ns(1), None);
    // A window that was seen once, after work, takes what its size says.
    let mut late = exit(9_000, 0, 7, 700_000, 0);
    let What::PauseExit { window, .. } = &mut late.what else {
        panic!("an exit")
    };
    *window = Some(3_200);
    let events = [exit(1_000, 0, 7, WINDOW_NS, 0), late];
    assert_eq!(
        lengths(&waits(&events)),
        [(9, 1, 1_000.0), (13, 1, 16_000.0)]
    );
}
