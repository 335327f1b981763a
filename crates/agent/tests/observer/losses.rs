// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is lost is counted, and a reset forgets it.

use unspin_agent::{EventMask, ObserveOptions, Observer};
use unspin_events::What;
use unspin_testbed::check;

use crate::{
    checks::{attach, nothing_was_lost, of},
    vms::{run_for, vcpus, vm},
};

check!(COUNTED: a_full_ring_loses_what_it_says);
/// What the ring could not take is counted by kind.
pub fn a_full_ring_loses_what_it_says() {
    let mut observer = Observer::attach(&ObserveOptions {
        events: EventMask::EXITS,
        ring_bytes: 4096,
        ..ObserveOptions::default()
    })
    .expect("a page is enough");
    run_for(20, vec![vm(2)]);
    let mut received = 0;
    observer
        .drain(&mut |event| received += u64::from(matches!(event.what, What::KvmExit { .. })))
        .expect("the ring");
    let health = observer.health().expect("the kernel tells");
    let lost = |name| {
        health
            .lost_by_kind
            .iter()
            .find(|(kind, _)| *kind == name)
            .map_or(0, |(_, count)| *count)
    };
    assert!(
        received > 0 && lost("kvm_exit") > 0,
        "{received} {health:?}"
    );
    assert_eq!(
        health.lost_events,
        lost("kvm_exit") + lost("kvm_entry"),
        "{health:?}"
    );
    let exits: u64 = observer
        .counters()
        .expect("the kernel tells")
        .iter()
        .map(|seen| seen.exits)
        .sum();
    assert_eq!(received + lost("kvm_exit"), exits, "{health:?}");
}

check!(COUNTED: threads_without_a_slot_are_counted);
/// Exits that no thread's counters hold are counted.
pub fn threads_without_a_slot_are_counted() {
    let narrow = Observer::attach(&ObserveOptions {
        events: EventMask::NONE,
        threads_max: 2,
        ..ObserveOptions::default()
    })
    .expect("two threads are allowed");
    let wide = attach(EventMask::NONE); // two at a time do not disturb each other
    run_for(20, vec![vm(3)]);
    let exits = |observer: &Observer| -> u64 {
        observer
            .counters()
            .expect("the kernel tells")
            .iter()
            .map(|seen| seen.exits)
            .sum()
    };
    assert_eq!(narrow.counters().expect("the kernel tells").len(), 2);
    let unobserved = narrow.health().expect("the kernel tells").unobserved_exits;
    assert!(unobserved > 0);
    assert_eq!(exits(&narrow) + unobserved, exits(&wide));
    nothing_was_lost(&wide);
}

check!(COUNTED: a_reset_begins_anew_and_frees_slots);
/// After a reset nothing is left, and ended threads have given their slots back.
pub fn a_reset_begins_anew_and_frees_slots() {
    let mut observer = Observer::attach(&ObserveOptions {
        events: EventMask::SWITCHES,
        threads_max: 3,
        ..ObserveOptions::default()
    })
    .expect("three threads are allowed");
    for round in 0..3 {
        let report = run_for(20, vec![vm(3)]);
        let counters = observer.counters().expect("the kernel tells");
        assert_eq!(counters.len(), 3, "round {round}");
        for (_, vcpu) in vcpus(&report) {
            let seen = of(&counters, vcpu);
            assert_eq!(
                seen.ple_exits, vcpu.statistics.pauses,
                "round {round}: {seen:?}"
            );
            assert_eq!(
                (seen.vm, seen.conservation_error_ns()),
                (round, 0),
                "{seen:?}"
            );
        }
        nothing_was_lost(&observer);
        observer.reset().expect("the kernel lets it");
        assert_eq!(
            observer.counters().expect("the kernel tells"),
            [],
            "round {round}"
        );
        let mut left = 0;
        observer.drain(&mut |_| left += 1).expect("the ring");
        assert_eq!(left, 0, "round {round}");
    }
}
