// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of everything that is observed. Each check attaches programs of its own.

use std::{
    collections::BTreeSet, env, os::unix::process::CommandExt, process::Command, time::Duration,
};

use unspin_agent::{EventMask, ObserveOptions, Observer, Recorder, capabilities};
use unspin_events::{
    ClockSample, Event, GuestWait, SwitchTrace, TscClock, VcpuCounters, What,
    truth::{self, Table1, Truth},
};
use unspin_scenario::Vm;
use unspin_vmm::{RunReport, VcpuReport, VmReport};

use crate::vms::{loops, run_turns, vcpus, vm};

/// A check and its name.
type Check = (&'static str, fn());

/// All of them, in the order in which they run.
pub const ALL: [Check; 7] = [
    (
        "counters_equal_what_the_guests_counted",
        counters_equal_what_the_guests_counted,
    ),
    ("events_equal_counters", events_equal_counters),
    (
        "a_full_ring_loses_what_it_says",
        a_full_ring_loses_what_it_says,
    ),
    (
        "threads_without_a_slot_are_counted",
        threads_without_a_slot_are_counted,
    ),
    (
        "a_reset_begins_anew_and_frees_slots",
        a_reset_begins_anew_and_frees_slots,
    ),
    (
        "truth_agrees_with_the_guests_own_table",
        truth_agrees_with_the_guests_own_table,
    ),
    ("without_root_it_says_so", without_root_it_says_so),
];

fn attach(events: EventMask) -> Observer {
    let options = ObserveOptions {
        events,
        ..ObserveOptions::default()
    };
    Observer::attach(&options).expect("the testbed's kernel has all it takes")
}

/// The counters of that vCPU's thread.
#[track_caller]
fn of<'a>(counters: &'a [VcpuCounters], vcpu: &VcpuReport) -> &'a VcpuCounters {
    let mut found = counters
        .iter()
        .filter(|counters| counters.thread == vcpu.thread_id);
    let one = found.next().expect("the thread was observed");
    assert_eq!(one.vcpu, vcpu.number);
    assert!(found.next().is_none(), "one slot per thread");
    one
}

#[track_caller]
fn nothing_was_lost(observer: &Observer) {
    let health = observer.health().expect("the kernel tells");
    assert_eq!(health.lost_events, 0, "{health:?}");
    assert_eq!(health.unobserved_exits, 0, "{health:?}");
    assert_eq!(health.recursion_misses(), 0, "{health:?}");
}

fn counters_equal_what_the_guests_counted() {
    let observer = attach(EventMask::NONE);
    let report = run_turns(150, vec![vm(4), vm(2), vm(1)]);
    let counters = observer.counters().expect("the kernel tells");
    nothing_was_lost(&observer);
    assert_eq!(counters.len(), 7);
    let mut spun = 0;
    for (_, vcpu) in vcpus(&report) {
        let seen = of(&counters, vcpu);
        let guest = &vcpu.statistics;
        assert_eq!(
            seen.ple_exits, guest.pauses,
            "every PAUSE exits on this emulator: {seen:?}"
        );
        assert_eq!(seen.on_spin, seen.ple_exits, "{seen:?}");
        assert_eq!(
            seen.ple_exits_user, 0,
            "locks are taken in kernel mode: {seen:?}"
        );
        assert_eq!(seen.ple_exits_unknown_mode, 0, "{seen:?}");
        assert!(seen.exits >= seen.ple_exits + guest.halts, "{seen:?}");
        assert_eq!(seen.conservation_error_ns(), 0, "{seen:?}");
        // It ended on a pCPU, as it began.
        assert_eq!(
            seen.switches_in,
            seen.switches_out_runnable + seen.switches_out_asleep,
            "{seen:?}"
        );
        let entries: u64 = seen.exit_to_entry_count.iter().sum();
        assert!(
            entries < seen.exits && entries >= seen.exits - 1 - vcpu.user_exits,
            "{seen:?}"
        );
        let yields = seen.yield_to_boosted + seen.yield_to_refused + seen.yield_to_failed;
        assert!(yields >= seen.on_spin - seen.on_spin_no_yield, "{seen:?}");
        spun += seen.ple_exits;
    }
    assert!(spun > 1_000, "{spun} pause-loop exits prove little");
    let sum = |of: fn(&VcpuCounters) -> u64| counters.iter().map(of).sum::<u64>();
    assert!(sum(|seen| seen.yield_to_boosted) > 0);
    assert!(sum(|seen| seen.runnable_ns) > 0 && sum(|seen| seen.asleep_ns) > 0);
    let numbers: BTreeSet<u32> = counters.iter().map(|counters| counters.vm).collect();
    assert_eq!(
        numbers,
        BTreeSet::from([0, 1, 2]),
        "VMs are numbered without gaps"
    );
}

fn recorded(turns: u32, vm: Vm, events: EventMask) -> (RunReport, Vec<Event>, Vec<VcpuCounters>) {
    let recorder = Recorder::start(attach(events), Duration::from_millis(2), 10_000_000);
    let recorder = recorder.expect("a thread");
    let report = run_turns(turns, vec![vm]);
    let recorded = recorder.finish().expect("the ring can be read");
    nothing_was_lost(&recorded.observer);
    assert_eq!(recorded.dropped, 0);
    let counters = recorded.observer.counters().expect("the kernel tells");
    (report, recorded.events, counters)
}

fn events_equal_counters() {
    let everything = EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::EXITS);
    let (report, events, counters) = recorded(30, vm(4), everything);
    for (_, vcpu) in vcpus(&report) {
        let seen = of(&counters, vcpu);
        let count = |which: fn(&What) -> bool| {
            let mine = events.iter().filter(|event| event.thread == vcpu.thread_id);
            mine.filter(|event| which(&event.what)).count() as u64
        };
        assert_eq!(
            count(|what| matches!(what, What::KvmExit { .. })),
            seen.exits
        );
        assert_eq!(
            count(|what| matches!(
                what,
                What::PauseExit {
                    kernel_mode: Some(true),
                    ..
                }
            )),
            seen.ple_exits
        );
        assert_eq!(
            count(|what| matches!(what, What::KvmVcpuOnSpin)),
            seen.on_spin
        );
        assert_eq!(
            count(|what| matches!(what, What::SwitchIn { .. })),
            seen.switches_in
        );
        let out = |what: &What| matches!(what, What::SwitchOut { runnable: true, .. });
        assert_eq!(count(out), seen.switches_out_runnable);
        let asleep = |what: &What| {
            matches!(
                what,
                What::SwitchOut {
                    runnable: false,
                    ..
                }
            )
        };
        assert_eq!(count(asleep), seen.switches_out_asleep);
        assert_eq!(
            count(|what| matches!(what, What::SchedWakeup { .. })),
            seen.switches_out_asleep
        );
        assert_eq!(
            count(|what| matches!(what, What::YieldTo { result: 1.., .. })),
            seen.yield_to_boosted
        );
        assert_eq!(
            count(|what| matches!(what, What::YieldTo { result: 0, .. })),
            seen.yield_to_refused
        );
    }
    let targets: BTreeSet<(u32, Option<u16>)> = events
        .iter()
        .filter_map(|event| match event.what {
            What::YieldTo {
                target_thread,
                target_vcpu,
                ..
            } => Some((target_thread, target_vcpu)),
            _ => None,
        })
        .collect();
    let known: BTreeSet<(u32, Option<u16>)> = vcpus(&report)
        .map(|(_, vcpu)| (vcpu.thread_id, Some(vcpu.number as u16)))
        .collect();
    assert!(
        !targets.is_empty() && targets.is_subset(&known),
        "{targets:?} {known:?}"
    );
}

fn a_full_ring_loses_what_it_says() {
    let mut observer = Observer::attach(&ObserveOptions {
        events: EventMask::EXITS,
        ring_bytes: 4096,
        ..ObserveOptions::default()
    })
    .expect("a page is enough");
    run_turns(20, vec![vm(2)]);
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

fn threads_without_a_slot_are_counted() {
    let narrow = Observer::attach(&ObserveOptions {
        events: EventMask::NONE,
        threads_max: 2,
        ..ObserveOptions::default()
    })
    .expect("two threads are allowed");
    let wide = attach(EventMask::NONE); // two at a time do not disturb each other
    run_turns(10, vec![vm(3)]);
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

fn a_reset_begins_anew_and_frees_slots() {
    let mut observer = Observer::attach(&ObserveOptions {
        events: EventMask::SWITCHES,
        threads_max: 3,
        ..ObserveOptions::default()
    })
    .expect("three threads are allowed");
    for round in 0..3 {
        let report = run_turns(10, vec![vm(3)]);
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

fn truth_of(
    vm: &VmReport,
    report: &RunReport,
    counters: &[VcpuCounters],
    events: &[Event],
) -> Truth {
    let sample = |sample: unspin_vmm::ClockSample| ClockSample {
        tsc: sample.tsc,
        ns: sample.monotonic_ns,
    };
    let clock =
        TscClock::new(sample(report.clock.begin), sample(report.clock.end)).expect("time went on");
    let mut waits = Vec::new();
    for vcpu in &vm.vcpus {
        assert_eq!(vcpu.statistics.log_dropped, 0, "the log holds every wait");
        for raw in &vcpu.waits {
            let mut raw = *raw;
            for tsc in [&mut raw.begin_tsc, &mut raw.end_tsc, &mut raw.stall_tsc] {
                *tsc = if *tsc == 0 {
                    0
                } else {
                    tsc.wrapping_sub(vcpu.tsc_offset as u64)
                };
            }
            let wait = GuestWait::from_abi(vcpu.number as u16, vm.vcpus.len() as u16, &raw);
            waits.push(wait.expect("our own guest does not lie"));
        }
    }
    let observed = counters.iter().map(|counters| counters.vcpu as u16);
    truth::join(&waits, &clock, &SwitchTrace::new(0, observed, events))
}

fn truth_agrees_with_the_guests_own_table() {
    const TURNS: u32 = 150;
    // Long holds, and an exit at few turns only: or a stall of 2,048 turns would take an emulated age.
    let vm = Vm {
        pause_every_turns: 64,
        hold: loops(20_000),
        ..vm(4)
    };
    let (report, events, counters) = recorded(TURNS, vm, EventMask::SWITCHES);
    let vm = &report.vms[0];
    let truth = truth_of(vm, &report, &counters, &events);
    let sum = |of: fn(&VcpuReport) -> u64| vm.vcpus.iter().map(of).sum();
    let table = Table1 {
        acquisitions: sum(|vcpu| vcpu.statistics.operations),
        stalls: sum(|vcpu| vcpu.statistics.stalls),
        stalls_unheld: sum(|vcpu| vcpu.statistics.stalls_unheld),
    };
    let stalls = &truth.lock_stalls;
    eprintln!("{table:?} {truth:?}");
    assert_eq!(table.acquisitions, u64::from(4 * TURNS));
    assert!(table.stalls > 0, "{table:?}");
    assert_eq!(stalls.unobserved, 0, "{truth:?}");
    assert_eq!(
        (stalls.total(), stalls.unheld()),
        (table.stalls, table.stalls_unheld),
        "{truth:?}"
    );
    let flag = &truth.holder_flag;
    assert_eq!(
        flag.set_and_off_cpu + flag.clear_and_running + flag.disagreements(),
        stalls.holder_off_cpu + stalls.holder_running,
        "{truth:?}"
    );
}

/// Attaches, and says how that went: run as another user.
pub fn attach_and_say() -> ! {
    match Observer::attach(&ObserveOptions::default()) {
        Ok(_) => println!("attached"),
        Err(error) => println!("{error}"),
    }
    let host = capabilities();
    println!(
        "root {} loadable {} btf {}",
        host.root, host.bpf_loadable, host.btf
    );
    std::process::exit(0)
}

fn without_root_it_says_so() {
    let said = |uid| {
        let own = env::current_exe().expect("procfs is mounted");
        let output = Command::new(own).arg("attach").uid(uid).gid(uid).output();
        let output = output.expect("it runs as anybody");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let nobody = said(65_534);
    assert!(
        nobody.contains("CAP_SYS_ADMIN is missing; run it with sudo"),
        "{nobody}"
    );
    assert!(
        nobody.contains("root false loadable false btf true"),
        "{nobody}"
    );
    let root = said(0);
    assert!(
        root.contains("attached\nroot true loadable true btf true"),
        "{root}"
    );
}
