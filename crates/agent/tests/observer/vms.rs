// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs to observe.

use unspin_abi::LockKind;
use unspin_scenario::{
    Distribution, EcsAblation, Host, Length, LockSharing, PvPageMemory, Scenario, Shape, Vm,
    WorkUnit, Workload,
};
use unspin_vmm::{RunOptions, RunReport, VcpuReport, run};

/// Always so much work.
pub fn loops(value: u64) -> Distribution {
    Distribution {
        unit: WorkUnit::Loops,
        shape: Shape::Constant(value),
    }
}

/// A VM whose vCPUs fight for one lock, and some of which sleep now and then.
pub fn vm(vcpus: u32) -> Vm {
    Vm {
        count: 1,
        vcpus,
        lock: LockKind::from_name("ticket").expect("there is one"),
        locks: LockSharing::Shared(1),
        user_work: loops(3_000),
        kernel_work: loops(100),
        hold: loops(300),
        shootdown_every_iterations: 0,
        wakeup_every_iterations: 50,
        load_changes_every_ms: 0,
        tick_hz: 0,
        pause_every_spins: 1,
        pause_exits: true,
        halt_exits: true,
        log_records: 10_000,
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

/// Runs those VMs for so long, whatever they get done: a convoy of descheduled waiters may need a slice per iteration.
pub fn run_for(milliseconds: u64, vms: Vec<Vm>) -> RunReport {
    run_on(None, milliseconds, vms)
}

/// The same from another seed.
pub fn run_from(seed: u64, milliseconds: u64, vms: Vec<Vm>) -> RunReport {
    execute(scenario(seed, None, milliseconds, vms))
}

/// The same on the first so many CPUs.
pub fn run_on(cpus: Option<u32>, milliseconds: u64, vms: Vec<Vm>) -> RunReport {
    execute(scenario(7, cpus, milliseconds, vms))
}

/// Those VMs on the first so many CPUs, from that seed, for so long.
pub fn scenario(seed: u64, cpus: Option<u32>, milliseconds: u64, vms: Vec<Vm>) -> Scenario {
    Scenario {
        name: "observed".into(),
        seed,
        length: Length::DurationNs(milliseconds * 1_000_000),
        warm_up_ns: 0,
        host: Host {
            cpus,
            ple_window: None,
            ple_gap: None,
            ple_window_fixed: false,
        },
        lab: None,
        vms,
    }
}

fn execute(scenario: Scenario) -> RunReport {
    run(&scenario, &RunOptions::default()).expect("the VMs run")
}

/// As `run_for`, watched or equipped.
pub fn run_with(options: &RunOptions, milliseconds: u64, vms: Vec<Vm>) -> RunReport {
    run(&scenario(7, None, milliseconds, vms), options).expect("the VMs run")
}

/// The same after a warm-up: the window is what comes then.
pub fn run_warmed_up(
    options: &RunOptions,
    warm_up_ms: u64,
    milliseconds: u64,
    vms: Vec<Vm>,
) -> RunReport {
    let mut scenario = scenario(7, None, warm_up_ms + milliseconds, vms);
    scenario.warm_up_ns = warm_up_ms * 1_000_000;
    run(&scenario, options).expect("the VMs run")
}

/// All vCPUs of a run, with the number of their VM.
pub fn vcpus(report: &RunReport) -> impl Iterator<Item = (u32, &VcpuReport)> {
    report
        .vms
        .iter()
        .flat_map(|vm| vm.vcpus.iter().map(|vcpu| (vm.number, vcpu)))
}
