// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parking, kicks, tasks and pv pages of the micro guest: nothing hangs, nobody is let in, whatever the host says.
use unspin_abi as abi;
use unspin_scenario::{EcsAblation, Vm, Workload};
use unspin_testbed::check;
use unspin_vmm::{Fault, RunOptions, RunReport};

use crate::support::{ITERATIONS, iterations, loops, run_alone, vm};

fn kind(name: &str) -> abi::LockKind {
    abi::LockKind::from_name(name).expect("there is one")
}

fn sum(report: &RunReport, of: fn(&abi::unspin_guest_statistics) -> u64) -> u64 {
    let vcpus = report.vms.iter().flat_map(|vm| &vm.vcpus);
    vcpus.map(|vcpu| of(&vcpu.statistics)).sum()
}

fn run_with(fault: Fault, vm: Vm) -> RunReport {
    let options = RunOptions {
        fault,
        ..Default::default()
    };
    run_alone(&iterations(vec![vm]), &options).expect("it runs")
}

/// Holds so long that others of 4 vCPUs park: some 2,048 iterations; the preemptable one counts them behind 16,384 in its queue
/// (ruling 13).
fn parking(lock: &str) -> Vm {
    let preemptable = lock == "paravirtual_preemptable_ticket";
    Vm {
        lock: kind(lock),
        hold: loops(if preemptable { 200_000 } else { 20_000 }),
        log_records: 0,
        ..vm(4)
    }
}

check!(KVM: parked_waiters_are_kicked_also_where_the_host_refuses);
pub fn parked_waiters_are_kicked_also_where_the_host_refuses() {
    for lock in [
        "paravirtual_ticket",
        "paravirtual_preemptable_ticket",
        "paravirtual_qspinlock",
    ] {
        for fault in [Fault::None, Fault::RefusedKick] {
            // The same kicks, and far longer holds.
            if lock == "paravirtual_preemptable_ticket" && fault == Fault::RefusedKick {
                continue;
            }
            let report = run_with(fault, parking(lock));
            assert_eq!(sum(&report, |s| s.operations), 4 * u64::from(ITERATIONS));
            let (halts, kicks) = (sum(&report, |s| s.lock_halts), sum(&report, |s| s.kicks));
            assert!(halts > 0 && kicks > 0, "{lock}: {halts} {kicks}");
            let refused = sum(&report, |s| s.kicks_refused);
            let expected = match fault {
                // Each vCPU remembers the first refusal.
                Fault::RefusedKick => 1..=4,
                _ => 0..=0,
            };
            assert!(expected.contains(&refused), "{lock}: {refused} refused");
        }
    }
    // Where HLT does not exit KVM could not end it: IPIs from the beginning.
    let inside = Vm {
        halt_exits: false,
        ..parking("paravirtual_ticket")
    };
    let report = run_with(Fault::None, inside);
    assert!(sum(&report, |s| s.lock_halts) > 0);
    assert_eq!(sum(&report, |s| s.kicks_refused), 0);
}

check!(KVM: every_task_does_its_iterations_with_every_kind_of_lock);
pub fn every_task_does_its_iterations_with_every_kind_of_lock() {
    for lock in abi::LockKind::all() {
        let many = Vm {
            lock,
            tasks_per_vcpu: 4,
            tick_hz: 1_000,
            workload: Workload::ReadersWriters,
            reader_percent: 50,
            hold: loops(2_000),
            ..vm(2)
        };
        let report = run_with(Fault::None, many);
        let name = lock.name();
        assert_eq!(
            sum(&report, |s| s.operations),
            2 * 4 * u64::from(ITERATIONS),
            "{name}"
        );
        assert!(sum(&report, |s| s.task_switches) > 0, "{name}");
        let reads = sum(&report, |s| s.reads);
        let iterations = 2 * 4 * u64::from(ITERATIONS);
        assert!(
            reads > iterations / 3 && reads < iterations * 2 / 3,
            "{name}: {reads}"
        );
    }
}

check!(KVM: workloads_do_what_they_are_called);
pub fn workloads_do_what_they_are_called() {
    let with = |workload, lock, tasks_per_vcpu, ecs_ablation| Vm {
        lock: kind(lock),
        workload,
        tasks_per_vcpu,
        ecs_ablation,
        reader_percent: 90,
        ..vm(4)
    };
    let ends = |vm: Vm| {
        let expected = 4 * u64::from(vm.tasks_per_vcpu) * u64::from(ITERATIONS);
        let report = run_with(Fault::None, vm);
        assert_eq!(sum(&report, |s| s.operations), expected);
        report
    };
    let report = ends(with(Workload::PingPong, "ticket", 2, EcsAblation::None));
    let (sleeps, wakes) = (
        sum(&report, |s| s.task_sleeps),
        sum(&report, |s| s.task_wakes),
    );
    assert!(wakes > 0 && wakes <= sleeps, "{wakes} of {sleeps}");
    assert!(sum(&report, |s| s.bww.count.iter().sum()) == wakes);
    let parts = |s: &abi::unspin_guest_statistics| {
        s.bww_exit_cycles + s.bww_host_cycles + s.bww_guest_cycles
    };
    assert!(sum(&report, parts) == sum(&report, |s| s.bww.sum_cycles.iter().sum()));
    assert!(report.vms[0].vcpus.iter().all(|v| v.statistics.tsc_khz > 0));
    let report = ends(with(Workload::Interrupts, "ticket", 1, EcsAblation::None));
    assert_eq!(
        sum(&report, |s| s.interrupts_worked),
        4 * u64::from(ITERATIONS)
    );
    for ecs_ablation in [EcsAblation::None, EcsAblation::NoSave] {
        let report = ends(with(Workload::ReadAFile, "rwsem", 4, ecs_ablation));
        assert!(sum(&report, |s| s.reads) > 0);
    }
}

check!(KVM: a_page_that_goes_away_or_lies_harms_nobody);
pub fn a_page_that_goes_away_or_lies_harms_nobody() {
    for fault in [Fault::PvPageGone, Fault::PvPageLies] {
        for lock in ["ticket", "paravirtual_qspinlock", "rwsem_eschdspin"] {
            let with_pv_page = Vm {
                lock: kind(lock),
                pv_page: true,
                hold: loops(2_000),
                tasks_per_vcpu: 2,
                ..vm(4)
            };
            let report = run_with(fault, with_pv_page);
            assert_eq!(
                sum(&report, |s| s.operations),
                4 * 2 * u64::from(ITERATIONS),
                "{lock}"
            );
        }
    }
}
