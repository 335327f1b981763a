// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of everything that is observed. Each check attaches programs of its own.

use std::{
    collections::BTreeSet, env, os::unix::process::CommandExt, process::Command, time::Duration,
};
use unspin_testbed::check;

use unspin_agent::{EventMask, ObserveOptions, Observer, Recorded, Recorder, capabilities};
use unspin_events::{Event, GuestMode, VcpuCounters, What};
use unspin_scenario::Vm;
use unspin_vmm::{RunReport, VcpuReport};

use crate::vms::{run_for, run_from, vcpus, vm};

/// An observer that must come up.
pub fn attach(events: EventMask) -> Observer {
    let options = ObserveOptions {
        events,
        ..ObserveOptions::default()
    };
    Observer::attach(&options).expect("the testbed's kernel has all it takes")
}

/// The counters of that vCPU's thread.
#[track_caller]
pub fn of<'a>(counters: &'a [VcpuCounters], vcpu: &VcpuReport) -> &'a VcpuCounters {
    let mut found = counters
        .iter()
        .filter(|counters| counters.thread == vcpu.thread_id);
    let one = found.next().expect("the thread was observed");
    assert_eq!(one.vcpu, vcpu.number);
    assert!(found.next().is_none(), "one slot per thread");
    one
}

/// Counters and events are complete.
#[track_caller]
pub fn nothing_was_lost(observer: &Observer) {
    let health = observer.health().expect("the kernel tells");
    assert_eq!(health.lost_events, 0, "{health:?}");
    assert_eq!(health.unobserved_exits, 0, "{health:?}");
    assert_eq!(health.recursion_misses(), 0, "{health:?}");
}

check!(COUNTED: counters_equal_what_the_guests_counted);
fn counters_equal_what_the_guests_counted() {
    let observer = attach(EventMask::NONE);
    let report = run_for(200, vec![vm(3), vm(2), vm(1)]);
    let counters = observer.counters().expect("the kernel tells");
    nothing_was_lost(&observer);
    assert_eq!(counters.len(), 6);
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
    assert!(spun > 300, "{spun} pause-loop exits prove little");
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

/// Runs a VM while its events are recorded, none of which may be lost. The kernel does not run a program that would interrupt
/// itself, and counts that: it takes an interrupt within some fifty instructions, so from another seed it goes well.
pub fn recorded(
    milliseconds: u64,
    vm: Vm,
    events: EventMask,
) -> (RunReport, Vec<Event>, Vec<VcpuCounters>) {
    let missed = |recorded: &Recorded| {
        let health = recorded.observer.health().expect("the kernel tells");
        health.recursion_misses()
    };
    let mut run = record(7, milliseconds, vm.clone(), events);
    for seed in 8..11 {
        if missed(&run.1) == 0 {
            break;
        }
        run = record(seed, milliseconds, vm.clone(), events);
    }
    let (report, recorded) = run;
    nothing_was_lost(&recorded.observer);
    let counters = recorded.observer.counters().expect("the kernel tells");
    (report, recorded.events, counters)
}

/// The same, where runs of programs may have been missed: `recorded.observer.health()` tells.
pub fn record(seed: u64, milliseconds: u64, vm: Vm, events: EventMask) -> (RunReport, Recorded) {
    let recorder = Recorder::start(attach(events), Duration::from_millis(2), 10_000_000);
    let recorder = recorder.expect("a thread");
    let report = run_from(seed, milliseconds, vec![vm]);
    let recorded = recorder.finish().expect("the ring can be read");
    assert_eq!(recorded.dropped, 0);
    (report, recorded)
}

check!(COUNTED: events_equal_counters);
fn events_equal_counters() {
    let everything = EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::EXITS);
    let (report, events, counters) = recorded(100, vm(3), everything);
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
                    mode: Some(GuestMode::Kernel),
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

check!(COUNTED: without_root_it_says_so);
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
