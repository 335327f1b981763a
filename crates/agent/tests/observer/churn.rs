// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs that come and go: bounded slots, sums that stay right, ids that are used again.

use std::{
    fs,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use unspin_testbed::check;

use unspin_agent::{
    EventMask, ObserveOptions, Observer,
    synthetic::{Synthetic, Vcpu},
};

use crate::vms::{run_for, vcpus, vm};

const VCPUS: u32 = 8;

/// What the vCPUs of that VM are said to have done: told apart from every other VM's.
fn exits_of(vm: u32, vcpu: u32) -> u32 {
    vm * 100 + vcpu + 1
}

/// A VM's life: its threads come at once, sleep a little, and go.
fn live(synthetic: &Synthetic, vm: u32, address: u64) {
    let all_there = Barrier::new(VCPUS as usize);
    thread::scope(|scope| {
        for number in 0..VCPUS {
            let all_there = &all_there;
            let body = move || {
                let vcpu = Vcpu {
                    vm: address,
                    number,
                };
                let had_a_slot = synthetic.adopt(vcpu, exits_of(vm, number));
                assert!(had_a_slot.expect("the program runs"), "VM {vm}");
                all_there.wait();
            };
            let small = thread::Builder::new().stack_size(64 << 10);
            small.spawn_scoped(scope, body).expect("a thread");
        }
    });
    synthetic.destroy(address).expect("the program runs");
}

/// `vms` VMs of 8 vCPUs one after another, all at one of two addresses, with slots for 4 of them and ids for fewer threads.
fn come_and_go(vms: u32) {
    let options = ObserveOptions {
        events: EventMask::NONE,
        threads_max: 4 * VCPUS,
        ..ObserveOptions::default()
    };
    let (mut observer, synthetic) = Synthetic::attach(&options).expect("no KVM is needed");
    let synthetic = &synthetic;
    for vm in 0..vms {
        live(synthetic, vm, 0x1000 + 0x1000 * u64::from(vm % 2));
        wait_until_ended(&observer);
        observer.drain(&mut |_| {}).expect("the ring");
    }
    let sums = observer.vm_counters().expect("the kernel tells");
    assert_eq!(sums.len(), vms as usize, "one sum per VM");
    for vm in 0..vms {
        let sum = &sums[&vm];
        let exits: u32 = (0..VCPUS).map(|vcpu| exits_of(vm, vcpu)).sum();
        assert_eq!(sum.exits, u64::from(exits), "{sum:?}");
        assert_eq!(sum.conservation_error_ns(), 0, "{sum:?}");
        assert!(sum.running_ns > 0, "{sum:?}");
    }
    assert!(
        observer.counters().expect("the kernel tells").len() <= 4 * VCPUS as usize,
        "no more than there are slots"
    );
}

check!(INTERRUPTED: no_vcpu_of_a_new_vm_goes_unobserved);
/// Two vCPUs of a new VM are seen for the first time at once, on two CPUs, a thousand times.
pub fn no_vcpu_of_a_new_vm_goes_unobserved() {
    const VMS: u32 = 1_000;
    let options = ObserveOptions {
        events: EventMask::NONE,
        threads_max: 2 * VMS,
        ..ObserveOptions::default()
    };
    let (observer, synthetic) = Synthetic::attach(&options).expect("no KVM is needed");
    let arrived = AtomicU64::new(0);
    let serve_all = |number: u32| {
        let had_a_slot = |vm: u64| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 * vm {
                std::hint::spin_loop();
            }
            let vcpu = Vcpu {
                vm: 0x1000 * vm,
                number,
            };
            synthetic.adopt(vcpu, 1).expect("the program runs")
        };
        // All of them, as the other thread waits for this one.
        (1..=u64::from(VMS)).filter(|vm| !had_a_slot(*vm)).count()
    };
    let unobserved = thread::scope(|scope| {
        let other = scope.spawn(|| serve_all(1));
        serve_all(0) + other.join().expect("it does not panic")
    });
    assert_eq!(unobserved, 0, "vCPUs without a slot");
    let numbers = observer.health().expect("the kernel tells").vms;
    assert_eq!(numbers, u64::from(VMS), "every VM has one number");
}

/// A thread that is joined has not quite ended.
fn wait_until_ended(observer: &Observer) {
    for _ in 0..1000 {
        if observer.threads_alive().expect("the kernel tells") == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("threads that were joined a second ago are not at their end");
}

/// Thread ids that come round soon, until dropped.
struct FewIds(String);

const PID_MAX: &str = "/proc/sys/kernel/pid_max";

impl FewIds {
    fn begin() -> FewIds {
        let before = fs::read_to_string(PID_MAX).expect("procfs is mounted");
        fs::write(PID_MAX, "400").expect("we are root");
        FewIds(before)
    }
}

impl Drop for FewIds {
    fn drop(&mut self) {
        fs::write(PID_MAX, self.0.trim()).expect("as it was");
    }
}

check!(INTERRUPTED: sums_stay_right_while_vms_come_and_go);
/// 125 VMs and 1,000 threads with 32 slots; ids and addresses of VMs are used again and again.
pub fn sums_stay_right_while_vms_come_and_go() {
    let _few = FewIds::begin();
    come_and_go(125);
}

check!(OBSERVER_LONG: sums_stay_right_with_8000_threads);
/// The same with 1,000 VMs and 8,000 threads.
pub fn sums_stay_right_with_8000_threads() {
    let _few = FewIds::begin();
    come_and_go(1_000);
}

check!(INTERRUPTED: counters_are_whole_while_vms_are_destroyed);
/// Real VMs that come and go while somebody reads counters all the time: nothing is missed, nothing is counted twice.
pub fn counters_are_whole_while_vms_are_destroyed() {
    let options = ObserveOptions {
        events: EventMask::NONE,
        threads_max: 8,
        ..ObserveOptions::default()
    };
    let mut observer = Observer::attach(&options).expect("the testbed's kernel has all it takes");
    let runs = thread::spawn(|| {
        let reports = (0..5).map(|_| run_for(20, vec![vm(2), vm(1)]));
        let pauses = reports.map(|report| {
            let pauses = vcpus(&report).map(|(_, vcpu)| vcpu.statistics.pauses);
            pauses.sum::<u64>()
        });
        pauses.collect::<Vec<u64>>()
    });
    let mut then = 0;
    while !runs.is_finished() {
        observer.drain(&mut |_| {}).expect("the ring");
        let sums = observer.vm_counters().expect("the kernel tells");
        let now: u64 = sums.values().map(|sum| sum.exits).sum();
        assert!(now >= then, "{now} after {then}");
        then = now;
        thread::sleep(Duration::from_millis(2));
    }
    let pauses = runs.join().expect("the VMs run");
    let sums = observer.vm_counters().expect("the kernel tells");
    let health = observer.health().expect("the kernel tells");
    assert_eq!((sums.len(), health.unobserved_exits), (10, 0), "{health:?}");
    for (run, pauses) in pauses.iter().enumerate() {
        let of_run = [2 * run as u32, 2 * run as u32 + 1];
        let exits: u64 = of_run.iter().map(|vm| sums[vm].ple_exits).sum();
        // The window is 64 PAUSEs and other exits begin it anew: fewer exits are right, more were counted twice.
        assert!(exits * 65 <= *pauses, "run {run}: {exits} of {pauses}");
    }
}
