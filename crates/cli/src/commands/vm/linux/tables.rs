// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin vm linux`: the run, each VM, each of its runs, each vCPU.
//!
//! What the guest says and what the host counted stand in columns of their own; what was not observed is unknown.

use std::time::Duration;

use unspin_events::VcpuCounters;
use unspin_experiment::linux::per_second;
use unspin_linux_guest::{Counts, VmReport};
use unspin_report::{Cell, Column, Document, Table, Unit};

use crate::commands::vm::host_columns;
use crate::commands::vm::linux::LinuxRun;

const RUN: &[Column] = &[
    Column::json_only("features", Unit::Text),
    Column::json_only("load", Unit::Text),
    Column::json_only("vms", Unit::Count),
    Column::json_only("window_ns", Unit::Nanoseconds),
];

/// Behind those of `host_columns::PAUSE_LOOP`.
const RUN_SEEN: &[Column] = &[
    Column::json_only("missed_bpf_runs", Unit::Count),
    Column::json_only("unobserved_exits", Unit::Count),
];

const VM: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::json_only("process", Unit::Count),
    Column::json_only("kernel", Unit::Text),
    Column::json_only("vcpus_seen", Unit::Count),
    Column::new("boot_ns", "booted in", Unit::Nanoseconds),
    Column::json_only("guest_boot_ns", Unit::Nanoseconds),
    Column::new("boot_exits", "exits booting", Unit::Count),
    Column::new("boot_ple_exits", "PLE booting", Unit::Count),
    Column::new("runs", "runs", Unit::Count),
    Column::new("load_mean_ns", "load, mean", Unit::Nanoseconds),
    Column::new("load_least_ns", "least", Unit::Nanoseconds),
    Column::new("load_most_ns", "most", Unit::Nanoseconds),
    Column::new("exits_per_second", "exits/s", Unit::Count),
    Column::new("ple_exits_per_second", "PLE/s", Unit::Count),
    Column::new("reschedules", "RES", Unit::Count),
    Column::new("function_calls", "CAL", Unit::Count),
    Column::new("tlb_shootdowns", "TLB", Unit::Count),
    Column::new("steal_ns", "stolen", Unit::Nanoseconds),
];

const LOAD_RUN: &[Column] = &[
    Column::json_only("vm", Unit::Text),
    Column::json_only("run", Unit::Count),
    Column::json_only("load_ns", Unit::Nanoseconds),
    Column::json_only("reschedules", Unit::Count),
    Column::json_only("function_calls", Unit::Count),
    Column::json_only("tlb_shootdowns", Unit::Count),
    Column::json_only("steal_ns", Unit::Nanoseconds),
];

const VCPU: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("vcpu", "vCPU", Unit::Count),
    Column::json_only("thread", Unit::Count),
    Column::new("exits", "exits", Unit::Count),
    Column::new("ple_exits", "PLE exits", Unit::Count),
    Column::new("ple_exits_user", "in user mode", Unit::Count),
    Column::new("on_spin", "on_spin", Unit::Count),
    Column::new("on_spin_no_yield", "no candidate", Unit::Count),
];

/// Behind those of `host_columns::SCHEDULING`.
const VCPU_MORE: &[Column] = &[
    Column::json_only("switches_out_runnable", Unit::Count),
    Column::json_only("boot_exits", Unit::Count),
    Column::json_only("boot_ple_exits", Unit::Count),
    Column::json_only("conservation_error_ns", Unit::Nanoseconds),
];

/// Adds all tables, and for people what ran under which window.
pub fn add(document: &mut Document, run: &LinuxRun) {
    document.note(summary(run));
    document.table(run_table(run));
    document.table(vm_table(run));
    document.table(load_run_table(run));
    // Without the host's counters it would have no row.
    if run.seen.is_some() {
        document.table(vcpu_table(run));
    }
    document.note(
        "load: as the guest timed it. RES, CAL, TLB: rescheduling, function-call and TLB shootdown interrupts that\n\
         the guest counted in its runs; stolen: vCPU time that it wanted and did not get. exits: of the window.",
    );
}

fn summary(run: &LinuxRun) -> String {
    let window = host_columns::format_pause_loop(run.pause_loop.as_ref());
    let kernel = run.report.vms.first().and_then(|vm| vm.kernel.as_deref());
    let seen = match &run.seen {
        Some(seen) => format!(
            "missed BPF runs {}, unobserved exits {}",
            seen.health.recursion_misses(),
            seen.health.unobserved_exits
        ),
        None => "not observed".into(),
    };
    format!(
        "{} VMs, Linux {}, {}: {}; {window}; {seen}",
        run.report.vms.len(),
        kernel.unwrap_or("-"),
        run.features,
        run.report.command
    )
}

fn run_table(run: &LinuxRun) -> Table {
    let health = run.seen.as_ref().map(|seen| &seen.health);
    let mut table = Table::new(
        "run",
        "",
        &[RUN, &host_columns::PAUSE_LOOP, RUN_SEEN].concat(),
    );
    let mut row: Vec<Cell> = vec![
        run.features.as_str().into(),
        run.report.command.as_str().into(),
        run.report.vms.len().into(),
        run.report.window_ns.into(),
    ];
    row.extend(host_columns::pause_loop_cells(run.pause_loop.as_ref()));
    row.extend([
        health.map(|health| health.recursion_misses()).into(),
        health.map(|health| health.unobserved_exits).into(),
    ]);
    table.push(row);
    table
}

fn vm_table(run: &LinuxRun) -> Table {
    let mut table = Table::new("vm", "VMs", VM);
    for vm in &run.report.vms {
        let boot = run.seen.as_ref().map(|seen| seen.boot(vm.process));
        let window = run.seen.as_ref().map(|seen| seen.window(vm.process));
        let sum = |counters: &Option<Vec<VcpuCounters>>, of: fn(&VcpuCounters) -> u64| {
            Some(counters.as_ref()?.iter().map(of).sum::<u64>())
        };
        // How long the threads were watched, which is a little longer than the window.
        let time = window
            .as_ref()
            .and_then(|window| window.iter().map(|vcpu| vcpu.wall_ns).max());
        let rate = |of: fn(&VcpuCounters) -> u64| -> Cell {
            let time = Duration::from_nanos(time.unwrap_or(0));
            sum(&window, of)
                .and_then(|count| per_second(count, time))
                .into()
        };
        let range = vm.range_load_ns();
        let mut row = vec![
            vm.name.as_str().into(),
            vm.process.into(),
            vm.kernel.as_deref().into(),
            window.as_ref().map(Vec::len).into(),
            vm.boot_ns.into(),
            vm.guest_boot_ns.into(),
            sum(&boot, |vcpu| vcpu.exits).into(),
            sum(&boot, |vcpu| vcpu.ple_exits).into(),
            vm.runs.len().into(),
            vm.mean_load_ns().into(),
            range.map(|(least, _)| least).into(),
            range.map(|(_, most)| most).into(),
            rate(|vcpu| vcpu.exits),
            rate(|vcpu| vcpu.ple_exits),
        ];
        row.extend(count_cells(vm.counts(), &run.features));
        table.push(row);
    }
    table
}

/// The guest's own counts; without the steal-time feature it does not know what was stolen.
fn count_cells(counts: Option<Counts>, features: &str) -> [Cell; 4] {
    let told = features.split(',').any(|word| word == "steal-time");
    [
        counts.map(|counts| counts.reschedules).into(),
        counts.map(|counts| counts.function_calls).into(),
        counts.map(|counts| counts.tlb_shootdowns).into(),
        counts.filter(|_| told).map(|counts| counts.steal_ns).into(),
    ]
}

fn load_run_table(run: &LinuxRun) -> Table {
    let mut table = Table::new("load_run", "", LOAD_RUN);
    for vm in &run.report.vms {
        for (number, one) in vm.runs.iter().enumerate() {
            let mut row: Vec<Cell> =
                vec![vm.name.as_str().into(), number.into(), one.load_ns.into()];
            row.extend(count_cells(Some(one.counts), &run.features));
            table.push(row);
        }
    }
    table
}

fn vcpu_table(run: &LinuxRun) -> Table {
    let mut table = Table::new(
        "vcpu",
        "vCPUs while the loads ran",
        &[VCPU, &host_columns::SCHEDULING, VCPU_MORE].concat(),
    );
    for vm in &run.report.vms {
        for row in vcpu_rows(run, vm) {
            table.push(row);
        }
    }
    table
}

fn vcpu_rows(run: &LinuxRun, vm: &VmReport) -> Vec<Vec<Cell>> {
    let Some(seen) = &run.seen else {
        return Vec::new();
    };
    let boot = seen.boot(vm.process);
    let row = |vcpu: &VcpuCounters| {
        let booting = boot.iter().find(|then| then.thread == vcpu.thread);
        let mut row: Vec<Cell> = vec![
            vm.name.as_str().into(),
            vcpu.vcpu.into(),
            vcpu.thread.into(),
            vcpu.exits.into(),
            vcpu.ple_exits.into(),
            vcpu.ple_exits_user.into(),
            vcpu.on_spin.into(),
            vcpu.on_spin_no_yield.into(),
        ];
        row.extend(host_columns::scheduling_cells(Some(vcpu)));
        row.extend([
            vcpu.switches_out_runnable.into(),
            booting.map(|vcpu| vcpu.exits).into(),
            booting.map(|vcpu| vcpu.ple_exits).into(),
            (vcpu.conservation_error_ns() as f64).into(),
        ]);
        row
    };
    seen.window(vm.process).iter().map(row).collect()
}
