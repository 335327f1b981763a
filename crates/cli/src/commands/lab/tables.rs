// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin lab run`: the run as a whole, its events, each VM, vCPU and pCPU.
//!
//! Rates and shares are those of the window (after the warm-up); counters are those of the whole run, as in `vm run`.

use std::time::Duration;

use unspin_lab::{
    Counts, Lab, Outcome, VcpuOutcome,
    observers::{Counter, KINDS},
};
use unspin_report::{Cell, Column, Document, Table, Unit};
use unspin_scenario::{Scenario, Vm};

const RUN: &[Column] = &[
    Column::json_only("scenario", Unit::Text),
    Column::json_only("scenario_sha256", Unit::Text),
    Column::new("seed", "seed", Unit::Count),
    Column::new("scheduler", "scheduler", Unit::Text),
    Column::new("cpus", "pCPUs", Unit::Count),
    Column::new("vms", "VMs", Unit::Count),
    Column::new("vcpus", "vCPUs", Unit::Count),
    Column::new("simulated_ns", "simulated", Unit::Nanoseconds),
    Column::json_only("window_ns", Unit::Nanoseconds),
    Column::new("wall_ns", "took", Unit::Nanoseconds),
    Column::new("events", "events", Unit::Count),
    Column::new("events_per_second", "events/s", Unit::Count),
    Column::new("acquisitions_per_second", "locks/s", Unit::Count),
    Column::new("resident_bytes", "peak memory, bytes", Unit::Count),
];
const EVENT: &[Column] = &[
    Column::new("kind", "event", Unit::Text),
    Column::new("events", "events", Unit::Count),
    Column::new("events_per_second", "per second of work", Unit::Count),
];
const VM: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::json_only("group", Unit::Count),
    Column::new("lock", "lock", Unit::Text),
    Column::new("vcpus", "vCPUs", Unit::Count),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("waiting_share_percent", "waiting %", Unit::Percent),
    Column::new("spin_share_percent", "spinning %", Unit::Percent),
    Column::new("steal_share_percent", "steal %", Unit::Percent),
    Column::new("halted_share_percent", "halted %", Unit::Percent),
    Column::new("pause_exits", "PLE exits", Unit::Count),
    Column::new("yields", "yields", Unit::Count),
    Column::new("yields_refused", "refused", Unit::Count),
    Column::new("preemptions", "preempted", Unit::Count),
    Column::new("preemptions_holding", "holding", Unit::Count),
    Column::new("preemptions_waiting", "waiting", Unit::Count),
    Column::new("loans", "loans", Unit::Count),
    Column::new("grants", "grants", Unit::Count),
    Column::new("given_back", "given back", Unit::Count),
    Column::json_only("helped", Unit::Count),
    Column::json_only("boundaries_critical", Unit::Count),
    Column::json_only("waits_ended", Unit::Count),
    Column::json_only("waited_spins", Unit::Count),
    Column::json_only("wait_host_ns", Unit::Nanoseconds),
];
const VCPU: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("vcpu", "vCPU", Unit::Count),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("waiting_share_percent", "waiting %", Unit::Percent),
    Column::new("spin_share_percent", "spinning %", Unit::Percent),
    Column::new("steal_share_percent", "steal %", Unit::Percent),
    Column::new("halted_share_percent", "halted %", Unit::Percent),
    Column::json_only("operations", Unit::Count),
    Column::new("lock_waits", "lock waits", Unit::Count),
    Column::json_only("lock_wait_ns", Unit::Nanoseconds),
    Column::new("longest_wait_ns", "longest", Unit::Nanoseconds),
    Column::json_only("hold_ns", Unit::Nanoseconds),
    Column::json_only("spin_ns", Unit::Nanoseconds),
    Column::json_only("running_ns", Unit::Nanoseconds),
    Column::json_only("runnable_ns", Unit::Nanoseconds),
    Column::json_only("halted_ns", Unit::Nanoseconds),
    Column::json_only("host_ns", Unit::Nanoseconds),
    Column::json_only("spin_host_ns", Unit::Nanoseconds),
    Column::json_only("longest_runnable_ns", Unit::Nanoseconds),
    Column::json_only("pauses", Unit::Count),
    Column::new("pause_exits", "PLE exits", Unit::Count),
    Column::new("yields", "yields", Unit::Count),
    Column::json_only("yields_refused", Unit::Count),
    Column::new("preemptions", "preempted", Unit::Count),
    Column::new("preemptions_holding", "holding", Unit::Count),
    Column::new("preemptions_waiting", "waiting", Unit::Count),
    Column::json_only("shootdowns", Unit::Count),
    Column::json_only("shootdowns_answered", Unit::Count),
    Column::json_only("wakeups", Unit::Count),
    Column::json_only("halts", Unit::Count),
    Column::json_only("ticks", Unit::Count),
    Column::json_only("loans", Unit::Count),
    Column::json_only("grants", Unit::Count),
    Column::json_only("given_back", Unit::Count),
    Column::json_only("helped", Unit::Count),
    Column::json_only("boundaries_critical", Unit::Count),
    Column::json_only("page_faults", Unit::Count),
    Column::json_only("guest_switches", Unit::Count),
];
const CPU: &[Column] = &[
    Column::new("cpu", "pCPU", Unit::Count),
    Column::new("busy_percent", "busy %", Unit::Percent),
    Column::new("switches", "switches", Unit::Count),
    Column::json_only("busy_ns", Unit::Nanoseconds),
    Column::json_only("idle_ns", Unit::Nanoseconds),
];

/// All of them.
pub fn add(document: &mut Document, scenario: &Scenario, lab: &Lab, ran: &Ran) {
    document.table(of_run(scenario, lab, ran));
    document.table(of_events(ran));
    document.table(of_vms(scenario, ran));
    document.table(of_vcpus(ran));
    document.table(of_cpus(ran));
}

/// So many per second of `ns`; none when no time passed.
fn rate(count: u64, ns: u128) -> Cell {
    match ns {
        0 => Cell::Unknown,
        ns => (count as f64 * 1e9 / ns as f64).into(),
    }
}

/// `part` of `whole` in percent; none of nothing.
fn share(part: u64, whole: u64) -> Cell {
    match whole {
        0 => Cell::Unknown,
        whole => (part as f64 * 100.0 / whole as f64).into(),
    }
}

fn of_run(scenario: &Scenario, lab: &Lab, ran: &Ran) -> Table {
    let mut table = Table::new("run", "", RUN);
    let outcome = &ran.outcome;
    let acquisitions = outcome.vcpus.iter();
    let acquisitions = acquisitions
        .map(|vcpu| vcpu.after.statistics.acquisitions)
        .sum();
    let wall_ns = ran.wall.as_nanos();
    table.push(vec![
        scenario.name.clone().into(),
        scenario.hash().into(),
        scenario.seed.into(),
        lab.scheduler().into(),
        lab.host().topology.cpus().into(),
        scenario.vms.iter().map(|vm| vm.count).sum::<u32>().into(),
        outcome.vcpus.len().into(),
        outcome.end_ns.into(),
        outcome.window_ns.into(),
        (wall_ns as f64).into(),
        outcome.trace_events.into(),
        rate(outcome.trace_events, wall_ns),
        rate(acquisitions, wall_ns),
        peak_resident_bytes().into(),
    ]);
    table
}

/// `VmHWM` of this process (proc(5)).
fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

fn of_events(ran: &Ran) -> Table {
    let mut table = Table::new("event", "\nEvents", EVENT);
    for (kind, count) in KINDS.iter().zip(ran.counter.kinds) {
        if count > 0 {
            let per_second = rate(count, ran.wall.as_nanos());
            table.push(vec![(*kind).into(), count.into(), per_second]);
        }
    }
    table
}

/// The cells that VMs and vCPUs share: a rate and four shares.
fn shares(vcpus: &[&VcpuOutcome], window_ns: u64) -> [Cell; 5] {
    let sum = |what: fn(&Counts) -> u64| -> u64 { vcpus.iter().map(|vcpu| vcpu.grown(what)).sum() };
    let operations = vcpus.iter().map(|vcpu| vcpu.operations()).sum();
    let wall_ns = window_ns * vcpus.len() as u64;
    let running_ns = sum(|counts| counts.times.running_ns);
    [
        rate(operations, window_ns.into()),
        share(sum(|counts| counts.statistics.lock_wait_ns), wall_ns),
        share(sum(|counts| counts.statistics.spin_ns), running_ns),
        share(sum(|counts| counts.times.runnable_ns), wall_ns),
        share(sum(|counts| counts.times.halted_ns), wall_ns),
    ]
}

fn of_vms(scenario: &Scenario, ran: &Ran) -> Table {
    let mut table = Table::new("vm", "\nVMs", VM);
    let groups = scenario.vms.iter().enumerate();
    let instances =
        groups.flat_map(|(group, of): (usize, &Vm)| (0..of.count).map(move |_| (group, of)));
    for (number, (group, of)) in instances.enumerate() {
        let ours = ran.outcome.vcpus.iter();
        let ours: Vec<_> = ours.filter(|vcpu| vcpu.vm as usize == number).collect();
        let all = |what: fn(&Counts) -> u64| -> Cell {
            ours.iter()
                .map(|vcpu| what(&vcpu.after))
                .sum::<u64>()
                .into()
        };
        let mut row: Vec<Cell> = vec![
            format!("vm{number}").into(),
            group.into(),
            of.lock.name().into(),
            of.vcpus.into(),
        ];
        row.extend(shares(&ours, ran.outcome.window_ns));
        row.extend([
            all(|counts| counts.statistics.pause_exits),
            all(|counts| counts.statistics.yields),
            all(|counts| counts.statistics.yields_refused),
            all(|counts| counts.statistics.preemptions),
            all(|counts| counts.statistics.preemptions_holding),
            all(|counts| counts.statistics.preemptions_waiting),
            all(|counts| counts.statistics.loans),
            all(|counts| counts.statistics.grants),
            all(|counts| counts.statistics.given_back),
            all(|counts| counts.statistics.helped),
            all(|counts| counts.statistics.boundaries_critical),
            all(|counts| counts.statistics.waits_ended),
            all(|counts| counts.statistics.waited_spins),
            all(|counts| counts.statistics.wait_host_ns),
        ]);
        table.push(row);
    }
    table
}

fn of_vcpus(ran: &Ran) -> Table {
    let mut table = Table::new("vcpu", "\nvCPUs", VCPU);
    for vcpu in &ran.outcome.vcpus {
        let Counts { statistics, times } = &vcpu.after;
        let mut row: Vec<Cell> = vec![format!("vm{}", vcpu.vm).into(), vcpu.vcpu.into()];
        row.extend(shares(&[vcpu], ran.outcome.window_ns));
        let counts = [
            statistics.operations,
            statistics.acquisitions,
            statistics.lock_wait_ns,
            statistics.longest_wait_ns,
            statistics.hold_ns,
            statistics.spin_ns,
            times.running_ns,
            times.runnable_ns,
            times.halted_ns,
            statistics.host_ns,
            statistics.spin_host_ns,
            times.longest_wait_ns,
            statistics.pauses,
            statistics.pause_exits,
            statistics.yields,
            statistics.yields_refused,
            statistics.preemptions,
            statistics.preemptions_holding,
            statistics.preemptions_waiting,
            statistics.shootdowns,
            statistics.shootdowns_answered,
            statistics.wakeups,
            statistics.halts,
            statistics.ticks,
            statistics.loans,
            statistics.grants,
            statistics.given_back,
            statistics.helped,
            statistics.boundaries_critical,
            statistics.page_faults,
            statistics.guest_switches,
        ];
        row.extend(counts.map(Cell::from));
        table.push(row);
    }
    table
}

fn of_cpus(ran: &Ran) -> Table {
    let mut table = Table::new("cpu", "\npCPUs", CPU);
    for (cpu, ((busy_ns, idle_ns), switches)) in ran
        .outcome
        .cpus
        .iter()
        .zip(&ran.counter.switches)
        .enumerate()
    {
        table.push(vec![
            cpu.into(),
            share(*busy_ns, busy_ns + idle_ns),
            (*switches).into(),
            (*busy_ns).into(),
            (*idle_ns).into(),
        ]);
    }
    table
}

/// A run and what watched it.
pub struct Ran {
    /// What came of it.
    pub outcome: Outcome,
    /// Its events.
    pub counter: Counter,
    /// How long it took.
    pub wall: Duration,
}
