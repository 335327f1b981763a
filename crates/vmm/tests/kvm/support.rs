// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios by hand, and what must hold after every run.
use std::{fs, sync::Mutex};

use unspin_abi as abi;
use unspin_scenario::{
    Distribution, EcsAblation, Host, Length, LockSharing, PvPageMemory, Scenario, Shape, Vm,
    WorkUnit, Workload,
};
use unspin_vmm::{Error, RunOptions, RunReport, run};

pub const ITERATIONS: u32 = 200;

/// One test at a time: they count this process's threads, and two CPUs are few.
static ALONE: Mutex<()> = Mutex::new(());

pub fn loops(value: u64) -> Distribution {
    Distribution {
        unit: WorkUnit::Loops,
        shape: Shape::Constant(value),
    }
}

pub fn vm(vcpus: u32) -> Vm {
    Vm {
        count: 1,
        vcpus,
        lock: abi::LockKind::from_name("test_and_test_and_set").expect("there is one"),
        locks: LockSharing::Shared(1),
        user_work: loops(300),
        kernel_work: loops(100),
        hold: loops(100),
        shootdown_every_iterations: 0,
        wakeup_every_iterations: 0,
        load_changes_every_ms: 0,
        tick_hz: 250,
        pause_every_spins: 1,
        pause_exits: true,
        halt_exits: true,
        log_records: 1000,
        log_minimum_spins: 0,
        pv_page: false,
        pv_page_memory: PvPageMemory::Guest,
        help_after_spins: 0,
        tasks_per_vcpu: 1,
        workload: Workload::Iterations,
        reader_percent: 0,
        ecs_ablation: EcsAblation::None,
    }
}

pub fn scenario(length: Length, vms: Vec<Vm>) -> Scenario {
    Scenario {
        name: "kvm".into(),
        seed: 1,
        length,
        warm_up_ns: match length {
            Length::DurationNs(ns) => ns / 4,
            Length::Iterations(_) => 0,
        },
        host: Host {
            cpus: None,
            ple_window: None,
            ple_gap: None,
            ple_window_fixed: false,
        },
        lab: None,
        vms,
    }
}

pub fn iterations(vms: Vec<Vm>) -> Scenario {
    scenario(Length::Iterations(ITERATIONS), vms)
}

/// Runs it alone and checks what must hold of every run.
pub fn run_alone(scenario: &Scenario, options: &RunOptions) -> Result<RunReport, Error> {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let result = run(scenario, options);
    assert_eq!(
        vcpu_threads(),
        Vec::<String>::new(),
        "no vCPU thread is left"
    );
    assert_eq!(kvm_descriptors(), 0, "no VM is left");
    result
}

/// Names of this process's threads that look like vCPUs.
pub fn vcpu_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("procfs is mounted");
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_string())
        .filter(|name| name.contains("/vcpu"))
        .collect()
}

/// Descriptors of this process that are /dev/kvm, a VM or a vCPU.
pub fn kvm_descriptors() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").expect("procfs is mounted");
    descriptors
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().contains("kvm"))
        .count()
}
