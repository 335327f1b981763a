// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs that do what their scenario says.
use std::{
    fs,
    sync::{Arc, Mutex},
};
use unspin_testbed::check;

use unspin_abi as abi;
use unspin_scenario::{Distribution, Length, Shape, Vm, WorkUnit};
use unspin_vmm::{Error, Phase, RunOptions};

use crate::support::{ITERATIONS, iterations, run_alone, scenario, vm};

check!(KVM: every_vcpu_does_its_iterations_and_says_so);
pub fn every_vcpu_does_its_iterations_and_says_so() {
    for vcpus in [1, 2, 4, 64] {
        let report =
            run_alone(&iterations(vec![vm(vcpus)]), &RunOptions::default()).expect("it runs");
        let [vm] = &report.vms[..] else {
            panic!("one VM")
        };
        assert_eq!(vm.vcpus.len(), vcpus as usize);
        assert!(vm.start_ns > 0 && vm.start_ns <= report.all_started_ns);
        for vcpu in &vm.vcpus {
            assert_eq!(vcpu.statistics.operations, u64::from(ITERATIONS));
            assert_eq!(
                vcpu.window, vcpu.statistics,
                "with iterations the window is the run"
            );
            assert_eq!(vcpu.statistics.state, abi::UNSPIN_STATE_DONE);
            let offsets = (vcpu.tsc_offset_at_start, vcpu.tsc_offset);
            assert_eq!(
                offsets,
                (0, 0),
                "the host calls its TSC unstable: tsc=reliable"
            );
            assert!(vcpu.user_exits >= 1 && vcpu.cpu_time_ns > 0);
            let first = report.clock.ns(vcpu.statistics.first_instruction_tsc);
            let done = report.clock.ns(vcpu.statistics.done_tsc);
            assert!(first >= report.clock.first().ns && first <= done);
            assert!(done <= report.clock.last().ns);
        }
        let mut threads: Vec<u32> = vm.vcpus.iter().map(|vcpu| vcpu.thread_id).collect();
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(
            threads.len(),
            vcpus as usize,
            "each vCPU has its own thread"
        );
    }
}

check!(KVM: the_log_has_one_record_per_acquisition_in_order);
pub fn the_log_has_one_record_per_acquisition_in_order() {
    let report = run_alone(&iterations(vec![vm(3)]), &RunOptions::default()).expect("it runs");
    let mut holds = Vec::new();
    for vcpu in &report.vms[0].vcpus {
        assert_eq!(vcpu.waits.len(), ITERATIONS as usize);
        assert_eq!(vcpu.statistics.log_kept, u64::from(ITERATIONS));
        for wait in &vcpu.waits {
            assert_eq!(u32::from(wait.kind), abi::UNSPIN_WAIT_LOCK);
            assert!(wait.begin_tsc <= wait.end_tsc && wait.end_tsc <= wait.released_tsc);
            holds.push((wait.end_tsc, wait.released_tsc));
        }
    }
    // One lock: nobody has it before the one before has begun to give it back.
    holds.sort_unstable();
    assert!(holds.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

check!(KVM: several_vms_run_for_the_time_asked_and_rates_come_from_the_window);
pub fn several_vms_run_for_the_time_asked_and_rates_come_from_the_window() {
    let two = Vm { count: 2, ..vm(2) };
    let length = Length::DurationNs(400_000_000);
    let phases = Arc::new(Mutex::new(Vec::new()));
    let seen = phases.clone();
    let options = RunOptions {
        on_phase: Some(Box::new(move |phase| {
            seen.lock().expect("not poisoned").push(phase)
        })),
        ..Default::default()
    };
    let report = run_alone(&scenario(length, vec![two, vm(1)]), &options).expect("it runs");
    let names: Vec<&str> = report.vms.iter().map(|vm| vm.name.as_str()).collect();
    assert_eq!(names, ["vm0", "vm1", "vm2"]);
    assert_eq!(
        report.vms.iter().map(|vm| vm.group).collect::<Vec<_>>(),
        [0, 0, 1]
    );
    // Never shorter than asked; how much longer depends on who else runs.
    assert!(report.window_ns >= 300_000_000, "{} ns", report.window_ns);
    for vcpu in report.vms.iter().flat_map(|vm| &vm.vcpus) {
        assert!(vcpu.window.operations > 0);
        assert!(vcpu.window.operations < vcpu.statistics.operations);
        assert!(vcpu.cpu_time_ns > 0);
    }
    use Phase::*;
    let phases = phases.lock().expect("not poisoned").clone();
    assert_eq!(
        phases,
        [Created, Started, WindowBegins, WindowEnds, Stopped]
    );
}

check!(KVM: a_small_vm_takes_less_than_2_mib);
pub fn a_small_vm_takes_less_than_2_mib() {
    let small = Vm {
        log_records: 0,
        ..vm(4)
    };
    let report = run_alone(&iterations(vec![small]), &RunOptions::default()).expect("it runs");
    let resident = report.vms[0].resident_bytes;
    assert!(resident > 0 && resident < 2 << 20, "{resident} bytes");
}

check!(KVM: work_in_nanoseconds_is_calibrated);
pub fn work_in_nanoseconds_is_calibrated() {
    let mut timed = vm(1);
    timed.hold = Distribution {
        unit: WorkUnit::Nanoseconds,
        shape: Shape::Constant(200_000),
    };
    let report = run_alone(&iterations(vec![timed]), &RunOptions::default()).expect("it runs");
    assert!(report.work_rate.expect("measured").loops_per_ms > 1000);
    // The fastest of 200: at least half of what was asked (nothing makes it faster, but the guest's CPU may be).
    let shortest = report.vms[0].vcpus[0]
        .waits
        .iter()
        .map(|wait| wait.released_tsc - wait.end_tsc)
        .min();
    let hz = u128::from(report.clock.tsc_hz());
    let shortest_ns = u128::from(shortest.expect("there are some")) * 1_000_000_000 / hz;
    assert!(shortest_ns >= 100_000, "{shortest_ns} ns");
    let plain = run_alone(&iterations(vec![vm(1)]), &RunOptions::default()).expect("it runs");
    assert_eq!(plain.work_rate, None);
}

check!(KVM: threads_stay_on_the_cpus_of_the_scenario);
pub fn threads_stay_on_the_cpus_of_the_scenario() {
    let allowed = Arc::new(Mutex::new(Vec::new()));
    let seen = allowed.clone();
    let options = RunOptions {
        on_phase: Some(Box::new(move |phase| {
            if phase == Phase::Started {
                seen.lock()
                    .expect("not poisoned")
                    .extend(cpus_of_vcpu_threads());
            }
        })),
        ..Default::default()
    };
    let mut confined = scenario(Length::DurationNs(100_000_000), vec![vm(2)]);
    confined.host.cpus = Some(1);
    run_alone(&confined, &options).expect("it runs");
    assert_eq!(*allowed.lock().expect("not poisoned"), ["0", "0"]);
    confined.host.cpus = Some(1000);
    let refused = run_alone(&confined, &RunOptions::default()).expect_err("no such host");
    assert!(
        matches!(refused, Error::HostCpus { wanted: 1000, .. }),
        "{refused}"
    );
}

/// `Cpus_allowed_list` of every vCPU thread.
fn cpus_of_vcpu_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("procfs is mounted");
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok())
        .filter(|status| {
            status
                .lines()
                .next()
                .is_some_and(|name| name.contains("/vcpu"))
        })
        .filter_map(|status| {
            let line = status
                .lines()
                .find(|line| line.starts_with("Cpus_allowed_list:"))?;
            Some(line.split(':').nth(1)?.trim().to_string())
        })
        .collect()
}

check!(KVM: a_hundred_vms_start_and_stop);
pub fn a_hundred_vms_start_and_stop() {
    let small = Vm {
        count: 100,
        log_records: 0,
        // 100 x 250 timer interrupts a second would be most of what two emulated CPUs can do.
        tick_hz: 0,
        ..vm(1)
    };
    let report = run_alone(&iterations(vec![small]), &RunOptions::default()).expect("they run");
    assert_eq!(report.vms.len(), 100);
    assert!(
        report
            .vms
            .iter()
            .all(|vm| vm.vcpus[0].statistics.operations == u64::from(ITERATIONS))
    );
    println!(
        "100 VMs: last first instruction after {} ns",
        report.all_started_ns
    );
}
