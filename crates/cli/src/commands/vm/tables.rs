// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin vm run`: the run as a whole, each VM, each vCPU.
//!
//! Rates and shares are those of the window (after the warm-up); counters are those of the whole run, so that the
//! guest's count of PAUSEs and the host's count of exits can be compared one to one.

use unspin_abi::unspin_guest_statistics;
use unspin_events::VcpuCounters;
use unspin_report::{Cell, Column, Document, Table, Unit};
use unspin_vmm::{RunReport, Shares, VcpuReport, VmReport};

use crate::commands::vm::{host_columns, run::Run, waits as vm_waits};

const RUN: &[Column] = &[
    Column::json_only("scenario", Unit::Text),
    Column::json_only("scenario_sha256", Unit::Text),
    Column::json_only("seed", Unit::Count),
    Column::json_only("vms", Unit::Count),
    Column::json_only("vcpus", Unit::Count),
    Column::json_only("window_ns", Unit::Nanoseconds),
    Column::json_only("all_started_ns", Unit::Nanoseconds),
    Column::json_only("loops_per_microsecond", Unit::Ratio),
];

/// Behind those of `host_columns::PAUSE_LOOP`.
const RUN_SEEN: &[Column] = &[
    Column::json_only("lost_events", Unit::Count),
    Column::json_only("dropped_events", Unit::Count),
    Column::json_only("missed_bpf_runs", Unit::Count),
    Column::json_only("unobserved_exits", Unit::Count),
];

const VM: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::json_only("group", Unit::Count),
    Column::new("lock", "lock", Unit::Text),
    Column::new("vcpus", "vCPUs", Unit::Count),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("waiting_share_percent", "waiting %", Unit::Percent),
    Column::new("spin_share_percent", "spinning %", Unit::Percent),
    Column::new("ple_exits", "PLE exits", Unit::Count),
    Column::new("start_ns", "started in", Unit::Nanoseconds),
    Column::json_only("window_ns", Unit::Nanoseconds),
    Column::json_only("resident_bytes", Unit::Count),
];

const VCPU: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("vcpu", "vCPU", Unit::Count),
    Column::json_only("thread", Unit::Count),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("waiting_share_percent", "waiting %", Unit::Percent),
    Column::new("spin_share_percent", "spinning %", Unit::Percent),
    Column::new("lock_waits", "lock waits", Unit::Count),
    Column::new("longest_wait_ns", "longest", Unit::Nanoseconds),
    Column::new("pauses", "PAUSEs", Unit::Count),
    Column::new("ple_exits", "PLE exits", Unit::Count),
    Column::new("on_spin", "on_spin", Unit::Count),
];

/// Behind those of `host_columns::SCHEDULING`.
const VCPU_MORE: &[Column] = &[
    Column::json_only("operations", Unit::Count),
    Column::json_only("spin_count", Unit::Count),
    Column::json_only("stalls", Unit::Count),
    Column::json_only("stalls_unheld", Unit::Count),
    Column::json_only("shootdowns", Unit::Count),
    Column::json_only("wakeups", Unit::Count),
    Column::json_only("halts", Unit::Count),
    Column::json_only("ticks", Unit::Count),
    Column::json_only("steal_ns", Unit::Nanoseconds),
    Column::json_only("cpu_time_ns", Unit::Nanoseconds),
    Column::json_only("user_exits", Unit::Count),
    Column::json_only("exits", Unit::Count),
    Column::json_only("ple_exits_user", Unit::Count),
    Column::json_only("on_spin_no_yield", Unit::Count),
    Column::json_only("switches_in", Unit::Count),
    Column::json_only("switches_out_runnable", Unit::Count),
    Column::json_only("exit_to_entry_ns", Unit::Nanoseconds),
    Column::json_only("conservation_error_ns", Unit::Nanoseconds),
];

/// Adds all three tables, and a line for people about the window in force and what was lost.
pub fn add(document: &mut Document, run: &Run) {
    document.note(summary(run));
    document.table(run_table(run));
    document.table(vm_table(run));
    document.table(vcpu_table(run));
    document.note(
        "waiting: share of all time; spinning: share of CPU time.\n\
         Rates and shares: of the window. Counters: of the whole run.",
    );
    vm_waits::add(document, &run.report);
}

/// Operations per second in the window.
pub fn operations_per_second(statistics: &unspin_guest_statistics, window_ns: u64) -> f64 {
    statistics.operations as f64 * 1e9 / window_ns as f64
}

/// Shares of a whole VM.
pub fn vm_shares(vm: &VmReport, tsc_hz: u64) -> Shares {
    Shares::sum(
        vm.vcpus
            .iter()
            .map(|vcpu| Shares::of(&vcpu.window, vcpu.cpu_time_ns, vm.window_ns, tsc_hz)),
    )
}

fn summary(run: &Run) -> String {
    let report = &run.report;
    let window = host_columns::format_pause_loop(report.pause_loop.as_ref());
    let seen = match &run.seen {
        Some(seen) => format!(
            "lost events {}, missed BPF runs {}, unobserved exits {}",
            seen.health.lost_events + seen.dropped_events,
            seen.health.recursion_misses(),
            seen.health.unobserved_exits
        ),
        None => "not observed".into(),
    };
    format!(
        "{}: {} VMs, {:.3} s measured; {window}; {seen}",
        run.scenario.name,
        report.vms.len(),
        report.window_ns as f64 / 1e9
    )
}

fn run_table(run: &Run) -> Table {
    let report = &run.report;
    let seen = run.seen.as_ref();
    let mut table = Table::new(
        "run",
        "",
        &[RUN, &host_columns::PAUSE_LOOP, RUN_SEEN].concat(),
    );
    let mut row: Vec<Cell> = vec![
        run.scenario.name.as_str().into(),
        run.scenario.hash().into(),
        run.scenario.seed.into(),
        report.vms.len().into(),
        report
            .vms
            .iter()
            .map(|vm| vm.vcpus.len())
            .sum::<usize>()
            .into(),
        report.window_ns.into(),
        report.all_started_ns.into(),
        report
            .work_rate
            .map(|rate| rate.loops_per_ms as f64 / 1e3)
            .into(),
    ];
    row.extend(host_columns::pause_loop_cells(report.pause_loop.as_ref()));
    row.extend([
        seen.map(|seen| seen.health.lost_events).into(),
        seen.map(|seen| seen.dropped_events).into(),
        seen.map(|seen| seen.health.recursion_misses()).into(),
        seen.map(|seen| seen.health.unobserved_exits).into(),
    ]);
    table.push(row);
    table
}

fn vm_table(run: &Run) -> Table {
    let tsc_hz = run.report.clock.tsc_hz();
    let mut table = Table::new("vm", "VMs", VM);
    for vm in &run.report.vms {
        let shares = vm_shares(vm, tsc_hz);
        let rate: f64 = vm
            .vcpus
            .iter()
            .map(|vcpu| operations_per_second(&vcpu.window, vm.window_ns))
            .sum();
        let counters = vm.vcpus.iter().map(|vcpu| counters(run, vcpu));
        let ple_exits = counters
            .map(|counters| counters.map(|counters| counters.ple_exits))
            .sum::<Option<u64>>();
        table.push(vec![
            vm.name.as_str().into(),
            vm.group.into(),
            run.scenario
                .vms
                .get(vm.group)
                .map(|group| group.lock.name())
                .into(),
            vm.vcpus.len().into(),
            rate.into(),
            shares.waiting_percent().into(),
            shares.spin_percent().into(),
            ple_exits.into(),
            vm.start_ns.into(),
            vm.window_ns.into(),
            vm.resident_bytes.into(),
        ]);
    }
    table
}

fn vcpu_table(run: &Run) -> Table {
    let mut table = Table::new(
        "vcpu",
        "vCPUs",
        &[VCPU, &host_columns::SCHEDULING, VCPU_MORE].concat(),
    );
    for vm in &run.report.vms {
        for vcpu in &vm.vcpus {
            let mut row = guest_cells(&run.report, vm, vcpu);
            let counters = counters(run, vcpu);
            let host = |of: fn(&VcpuCounters) -> u64| -> Cell { counters.map(of).into() };
            // Columns "PLE exits" to "asleep" stand between the guest's own figures.
            let mut shown = vec![host(|c| c.ple_exits), host(|c| c.on_spin)];
            shown.extend(host_columns::scheduling_cells(counters));
            row.splice(9..9, shown);
            row.extend([
                host(|c| c.exits),
                host(|c| c.ple_exits_user),
                host(|c| c.on_spin_no_yield),
                host(|c| c.switches_in),
                host(|c| c.switches_out_runnable),
                host(|c| c.exit_to_entry_ns),
                counters.map(|c| c.conservation_error_ns() as f64).into(),
            ]);
            table.push(row);
        }
    }
    table
}

fn counters<'a>(run: &'a Run, vcpu: &VcpuReport) -> Option<&'a VcpuCounters> {
    run.seen.as_ref()?.of_thread(vcpu.thread_id)
}

/// What VMM and guest say, in the order of the columns, those of the host left out.
fn guest_cells(report: &RunReport, vm: &VmReport, vcpu: &VcpuReport) -> Vec<Cell> {
    let tsc_hz = report.clock.tsc_hz();
    let shares = Shares::of(&vcpu.window, vcpu.cpu_time_ns, vm.window_ns, tsc_hz);
    let whole = &vcpu.statistics;
    let longest_ns = whole.longest_wait_cycles as f64 * 1e9 / tsc_hz.max(1) as f64;
    vec![
        vm.name.as_str().into(),
        vcpu.number.into(),
        vcpu.thread_id.into(),
        operations_per_second(&vcpu.window, vm.window_ns).into(),
        shares.waiting_percent().into(),
        shares.spin_percent().into(),
        whole.lock_waits.into(),
        longest_ns.into(),
        whole.pauses.into(),
        whole.operations.into(),
        whole.spin_count.into(),
        whole.stalls.into(),
        whole.stalls_unheld.into(),
        whole.shootdowns.into(),
        whole.wakeups.into(),
        whole.halts.into(),
        whole.ticks.into(),
        whole.steal_ns.into(),
        vcpu.cpu_time_ns.into(),
        vcpu.user_exits.into(),
    ]
}
