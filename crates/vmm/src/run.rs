// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario from beginning to end: all VMs up, warm-up, window, stop, report.
pub(crate) mod construct;
pub(crate) mod fleet;
pub(crate) mod report;
pub(crate) mod running;
pub(crate) mod shares;
pub(crate) mod snapshot;
pub(crate) mod thread;
use std::time::{Duration, Instant};

use unspin_abi as abi;
use unspin_events::TscClock;
use unspin_scenario::{Length, Scenario};

use crate::{
    Error,
    options::{Phase, RunOptions},
    run::{
        construct::FleetVm,
        fleet::Fleet,
        report::{RunReport, VcpuReport, VmReport, growth},
        running::Running,
        snapshot::{Snapshot, VcpuSnapshot, VmSnapshot},
    },
};

/// A run of so many iterations takes what it takes; an interrupt ends it.
const FOREVER: Duration = Duration::from_secs(3600);

/// Runs the scenario on this host's KVM, VMs and all in this process.
///
/// Returns when every VM is gone. Needs `/dev/kvm`. Any thread may call it, several at a time.
///
/// # Errors
/// See [`Error`]; by the time it is returned no VM and no vCPU thread of the run is left.
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<RunReport, Error> {
    run_told(scenario, options, &|phase| options.told(phase))
}

/// The same, its phases told to `phase` in place of the options' callback, on the calling thread.
///
/// # Errors
/// As [`run()`].
pub fn run_told(
    scenario: &Scenario,
    options: &RunOptions,
    phase: &dyn Fn(Phase),
) -> Result<RunReport, Error> {
    let mut running = Running::start_told(scenario, options, phase)?;
    let window = match scenario.length {
        Length::Iterations(_) => run_iterations(&mut running.fleet)?,
        Length::DurationNs(ns) => {
            let window = run_duration(&mut running.fleet, scenario.warm_up_ns, ns, phase)?;
            running.finish_spins()?;
            window
        }
    };
    running.fleet.take_down();
    phase(Phase::Stopped);
    Ok(report(&running, window, running.clock()?))
}

/// Two snapshots; without a first one the window begins with the first instruction.
struct Window {
    begin: Option<Snapshot>,
    end: Snapshot,
}

fn run_iterations(fleet: &mut Fleet) -> Result<Window, Error> {
    while !fleet.wait_until(Instant::now() + FOREVER)? {}
    Ok(Window {
        begin: None,
        end: Snapshot::take(fleet),
    })
}

fn run_duration(
    fleet: &mut Fleet,
    warm_up_ns: u64,
    duration_ns: u64,
    phase: &dyn Fn(Phase),
) -> Result<Window, Error> {
    fleet.wait_until(Instant::now() + Duration::from_nanos(warm_up_ns))?;
    let begin = Snapshot::take(fleet);
    // From here, not from the start: a main thread that wakes up late makes the run longer, never the window shorter.
    let window = Duration::from_nanos(duration_ns.saturating_sub(warm_up_ns));
    let end = Instant::now() + window;
    phase(Phase::WindowBegins);
    fleet.wait_until(end)?;
    let end = Snapshot::take(fleet);
    phase(Phase::WindowEnds);
    let begin = Some(begin);
    Ok(Window { begin, end })
}

fn report(running: &Running, window: Window, clock: TscClock) -> RunReport {
    let begins = |vm: usize| window.begin.as_ref().map(|snapshot| &snapshot.vms[vm]);
    let vms: Vec<VmReport> = running
        .fleet
        .vms
        .iter()
        .enumerate()
        .map(|(index, vm)| vm_report(vm, begins(index), &window.end.vms[index], &clock))
        .collect();
    let sum: u64 = vms.iter().map(|vm| vm.window_ns).sum();
    RunReport {
        window_ns: sum / vms.len().max(1) as u64,
        all_started_ns: vms.iter().map(|vm| vm.start_ns).max().unwrap_or(0),
        clock,
        work_rate: running.work_rate,
        pause_loop: running.host.pause_loop,
        vms,
    }
}

fn vm_report(
    vm: &FleetVm,
    begin: Option<&VmSnapshot>,
    end: &VmSnapshot,
    clock: &TscClock,
) -> VmReport {
    let machine = &vm.machine;
    let vcpus: Vec<VcpuReport> = (0..)
        .zip(&end.vcpus)
        .map(|(vcpu, end)| vcpu_report(vm, vcpu, begin, end))
        .collect();
    let host_ns = |tsc: u64, vcpu: &VcpuReport| clock.ns(tsc.wrapping_sub(vcpu.tsc_offset as u64));
    let first = vcpus
        .iter()
        .map(|v| host_ns(v.statistics.first_instruction_tsc, v));
    let first_ns = first.min().unwrap_or(clock.first().ns);
    let done = vcpus.iter().map(|v| host_ns(v.statistics.done_tsc, v));
    let window_ns = match begin {
        Some(begin) => end.monotonic_ns - begin.monotonic_ns,
        None => done.max().unwrap_or(0).saturating_sub(first_ns),
    };
    VmReport {
        number: machine.number,
        name: machine.name.clone(),
        group: machine.group,
        start_ns: first_ns.saturating_sub(clock.first().ns),
        window_ns,
        resident_bytes: machine.memory.resident_bytes(),
        vcpus,
    }
}

fn vcpu_report(
    vm: &FleetVm,
    number: u32,
    begin: Option<&VmSnapshot>,
    end: &VcpuSnapshot,
) -> VcpuReport {
    let machine = &vm.machine;
    let end_of_run = vm.vcpus[number as usize].end.as_ref();
    let begin = begin.map(|snapshot| &snapshot.vcpus[number as usize]);
    let zero = abi::unspin_guest_statistics::default();
    VcpuReport {
        number,
        thread_id: vm.vcpus[number as usize].thread_id,
        tsc_offset_at_start: machine.tsc_offsets[number as usize],
        tsc_offset: end_of_run.map_or(0, |end| end.tsc_offset),
        statistics: machine.memory.statistics(number),
        window: growth(
            begin.map_or(&zero, |begin| &begin.statistics),
            &end.statistics,
        ),
        cpu_time_ns: end.cpu_time_ns
            - begin
                .map_or(0, |begin| begin.cpu_time_ns)
                .min(end.cpu_time_ns),
        user_exits: end_of_run.map_or(0, |end| end.user_exits),
        waits: machine.memory.waits(number, machine.log_records),
    }
}
