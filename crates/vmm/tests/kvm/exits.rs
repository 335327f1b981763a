// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes a vCPU exit: KVM's own counters (debugfs) beside the guest's.
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use unspin_testbed::check;

use unspin_scenario::{Length, LockSharing, Vm};
use unspin_vmm::{Phase, RunOptions, RunReport};

use crate::support::{iterations, loops, run_alone, scenario, vm};

/// One of KVM's counters, summed over all VMs that are there.
fn kvm_counter(name: &str) -> u64 {
    let path = format!("/sys/kernel/debug/kvm/{name}");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.trim().parse().expect("a number")
}

/// Runs 300 ms of it and reads the counter when the window ends.
fn run_and_read(vm: Vm, counter: &'static str) -> (RunReport, u64) {
    let read = Arc::new(AtomicU64::new(u64::MAX));
    let at_end = read.clone();
    let options = RunOptions {
        on_phase: Some(Box::new(move |phase| {
            if phase == Phase::WindowEnds {
                at_end.store(kvm_counter(counter), Ordering::Relaxed);
            }
        })),
        ..Default::default()
    };
    let scenario = scenario(Length::DurationNs(300_000_000), vec![vm]);
    let report = run_alone(&scenario, &options).expect("it runs");
    (report, read.load(Ordering::Relaxed))
}

fn pauses(report: &RunReport) -> u64 {
    let vcpus = report.vms.iter().flat_map(|vm| &vm.vcpus);
    vcpus.map(|vcpu| vcpu.statistics.pauses).sum()
}

/// Two vCPUs that wait for each other most of the time, without a tick that would make them exit.
fn spinners(pause_exits: bool) -> Vm {
    Vm {
        hold: loops(20_000),
        user_work: loops(100),
        tick_hz: 0,
        pause_exits,
        ..vm(2)
    }
}

check!(KVM: without_pause_exits_spinning_stays_in_the_guest);
pub fn without_pause_exits_spinning_stays_in_the_guest() {
    let (report, exits) = run_and_read(spinners(false), "exits");
    let pauses = pauses(&report);
    assert!(pauses > 10_000, "{pauses} PAUSEs");
    assert!(exits * 4 < pauses, "{exits} exits, {pauses} PAUSEs");
}

check!(KVM: without_halt_exits_an_idle_vcpu_stays_in_the_guest);
pub fn without_halt_exits_an_idle_vcpu_stays_in_the_guest() {
    let idle = |halt_exits| Vm {
        // A token goes round: whoever waits for it halts.
        wakeup_every_iterations: 1,
        halt_exits,
        ..vm(2)
    };
    let (report, halts) = run_and_read(idle(true), "halt_exits");
    assert!(report.vms[0].vcpus.iter().any(|vcpu| vcpu.window.halts > 0));
    assert!(halts > 0);
    let (report, halts) = run_and_read(idle(false), "halt_exits");
    assert!(report.vms[0].vcpus.iter().any(|vcpu| vcpu.window.halts > 0));
    assert_eq!(halts, 0);
}

check!(KVM: shootdowns_are_answered_by_all_others_and_every_token_is_used);
pub fn shootdowns_are_answered_by_all_others_and_every_token_is_used() {
    let busy = Vm {
        shootdown_every_iterations: 10,
        wakeup_every_iterations: 7,
        ..vm(4)
    };
    let report = run_alone(&iterations(vec![busy]), &RunOptions::default()).expect("it runs");
    let vcpus = &report.vms[0].vcpus;
    let sum = |of: fn(&unspin_abi::unspin_guest_statistics) -> u64| -> u64 {
        vcpus.iter().map(|vcpu| of(&vcpu.statistics)).sum()
    };
    assert_eq!(sum(|s| s.shootdowns), 4 * 20);
    assert_eq!(sum(|s| s.shootdowns_answered), 3 * 4 * 20);
    assert_eq!(sum(|s| s.wakeups), 4 * 28);
    assert!(sum(|s| s.wakeups_received) <= sum(|s| s.wakeups));
}

check!(KVM: private_locks_make_nobody_wait);
pub fn private_locks_make_nobody_wait() {
    let private = Vm {
        locks: LockSharing::Private,
        ..vm(4)
    };
    let report = run_alone(&iterations(vec![private]), &RunOptions::default()).expect("it runs");
    for vcpu in &report.vms[0].vcpus {
        assert_eq!((vcpu.statistics.lock_waits, vcpu.statistics.pauses), (0, 0));
    }
}
