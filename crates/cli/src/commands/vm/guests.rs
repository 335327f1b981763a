// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the micro guests say of themselves beyond their waits: in which critical sections they were preempted (eCS's
//! classes, ruling 23), how long woken tasks took to run (BWW), and what their locks asked of the host.
//!
//! Counters of the whole run; each table only when some VM has something to say in it.

use unspin_abi::{UNSPIN_GUEST_ECS_CLASSES, unspin_guest_statistics};
use unspin_report::{Cell, Column, Document, Table, Unit};
use unspin_vmm::VmReport;

use crate::commands::vm::run::Run;

/// In the order of `enum unspin_ecs_class` (policy/classify/ecs_class.h), which is that of precedence.
const CLASSES: [(&str, &str); UNSPIN_GUEST_ECS_CLASSES as usize] = [
    ("icp", "interrupt (ICP)"),
    ("nb_lhp", "spinning lock (NB-LHP)"),
    ("rrp", "RCU reader (RRP)"),
    ("b_lhp", "blocking lock (B-LHP)"),
    ("rp", "reader (RP)"),
    ("none", "none"),
];

const PREEMPTIONS: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::json_only("class", Unit::Text),
    Column::new("section", "critical section", Unit::Text),
    Column::new("preemptions", "preemptions", Unit::Count),
    Column::new("of_all_percent", "of all %", Unit::Percent),
    Column::new("applied", "applied", Unit::Count),
    Column::new("stolen_ns", "off its CPU", Unit::Nanoseconds),
];

const WAKEUPS: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("wakeups", "woken tasks", Unit::Count),
    Column::new("mean_ns", "mean", Unit::Nanoseconds),
    Column::new("exit_ns", "exit and IPI", Unit::Nanoseconds),
    Column::new("host_ns", "host queue", Unit::Nanoseconds),
    Column::new("guest_ns", "guest", Unit::Nanoseconds),
];

const CALLS: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("lock_halts", "halts in locks", Unit::Count),
    Column::new("kicks", "kicks", Unit::Count),
    Column::new("kicks_refused", "refused", Unit::Count),
    Column::new("helps", "asked for help", Unit::Count),
    Column::new("named_yields", "named", Unit::Count),
    Column::new("task_switches", "task switches", Unit::Count),
    Column::new("task_sleeps", "sleeps", Unit::Count),
    Column::new("interrupts_worked", "interrupts", Unit::Count),
    Column::new("reads", "reads", Unit::Count),
    Column::json_only("pv_page_registrations", Unit::Count),
    Column::json_only("pv_page_acknowledgements", Unit::Count),
];

/// Adds the tables that have rows.
pub fn add(document: &mut Document, run: &Run) {
    let mut preemptions = Table::new(
        "preemption",
        "Preemptions by critical section, as the guests know",
        PREEMPTIONS,
    );
    let mut wakeups = Table::new(
        "wakeup",
        "Blocked-waiter wake-ups (BWW): from the wake-up until the task runs",
        WAKEUPS,
    );
    let mut calls = Table::new("call", "What locks and tasks did", CALLS);
    let (mut any_preemption, mut any_wakeup, mut any_call) = (false, false, false);
    for vm in &run.report.vms {
        for row in preemption_rows(vm) {
            any_preemption = true;
            preemptions.push(row);
        }
        if let Some(row) = wakeup_row(vm, run.report.clock.tsc_hz()) {
            any_wakeup = true;
            wakeups.push(row);
        }
        if let Some(row) = call_row(vm) {
            any_call = true;
            calls.push(row);
        }
    }
    if any_preemption {
        document.table(preemptions);
        document.note(
            "preemptions: each once, by precedence from above; applied: in every class that held.",
        );
    }
    if any_wakeup {
        document.table(wakeups);
    }
    if any_call {
        document.table(calls);
    }
}

fn sum(vm: &VmReport, of: impl Fn(&unspin_guest_statistics) -> u64) -> u64 {
    let each = vm.vcpus.iter().map(|vcpu| of(&vcpu.statistics));
    each.fold(0, u64::saturating_add)
}

/// A row for each class; none where KVM tells no steal time, or nothing was stolen.
fn preemption_rows(vm: &VmReport) -> Vec<Vec<Cell>> {
    let told = vm.vcpus.iter().all(|vcpu| vcpu.statistics.steal_time != 0);
    let all = sum(vm, |s| {
        s.preempted.iter().fold(0, |a, b| a.saturating_add(*b))
    });
    if !told || all == 0 {
        return Vec::new();
    }
    let row = |(class, (word, section)): (usize, &(&str, &str))| {
        let preemptions = sum(vm, |s| s.preempted[class]);
        vec![
            vm.name.as_str().into(),
            (*word).into(),
            (*section).into(),
            preemptions.into(),
            (preemptions as f64 * 100.0 / all as f64).into(),
            sum(vm, |s| s.preempted_in[class]).into(),
            sum(vm, |s| s.preempted_ns[class]).into(),
        ]
    };
    CLASSES.iter().enumerate().map(row).collect()
}

/// Means of all woken tasks; none where nobody was woken.
fn wakeup_row(vm: &VmReport, tsc_hz: u64) -> Option<Vec<Cell>> {
    let wakeups = sum(vm, |s| s.task_wakes);
    if wakeups == 0 {
        return None;
    }
    let mut told = vm.vcpus.iter().map(|vcpu| &vcpu.statistics);
    let told = told.all(|statistics| statistics.steal_time != 0 && statistics.tsc_khz != 0);
    let parts = [
        sum(vm, |s| s.bww_exit_cycles),
        sum(vm, |s| s.bww_host_cycles),
        sum(vm, |s| s.bww_guest_cycles),
    ];
    let (mean_ns, parts_ns) = wakeup_means(parts, wakeups, tsc_hz, told);
    let mut row = vec![vm.name.as_str().into(), wakeups.into(), mean_ns.into()];
    row.extend(parts_ns.map(Cell::from));
    Some(row)
}

/// The mean time of `wakeups` (above 0) and its parts, nanoseconds, which add up to it. The parts are known only where the
/// guest was `told` its steal time and the TSC's rate; without a rate here (0) nothing is.
fn wakeup_means(
    parts_cycles: [u64; 3],
    wakeups: u64,
    tsc_hz: u64,
    told: bool,
) -> (Option<f64>, [Option<f64>; 3]) {
    if tsc_hz == 0 {
        return (None, [None; 3]);
    }
    let parts_ns = parts_cycles.map(|cycles| cycles as f64 * 1e9 / tsc_hz as f64 / wakeups as f64);
    let mean_ns = parts_ns.iter().sum();
    (Some(mean_ns), parts_ns.map(|ns| told.then_some(ns)))
}

fn call_row(vm: &VmReport) -> Option<Vec<Cell>> {
    let of: [fn(&unspin_guest_statistics) -> u64; 11] = [
        |s| s.lock_halts,
        |s| s.kicks,
        |s| s.kicks_refused,
        |s| s.helps,
        |s| s.named_yields,
        |s| s.task_switches,
        |s| s.task_sleeps,
        |s| s.interrupts_worked,
        |s| s.reads,
        |s| s.pv_page_registrations,
        |s| s.pv_page_acknowledgements,
    ];
    let sums = of.map(|of| sum(vm, of));
    if sums.iter().all(|sum| *sum == 0) {
        return None;
    }
    let mut row: Vec<Cell> = vec![vm.name.as_str().into()];
    row.extend(sums.map(Cell::from));
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_wake_up_add_up_or_are_not_known() {
        let parts = [3_000, 50_000, 7_000];
        let (mean, shown) = wakeup_means(parts, 10, 2_000_000_000, true);
        assert_eq!(shown, [Some(150.0), Some(2_500.0), Some(350.0)]);
        assert_eq!(mean, Some(3_000.0));
        let untold = wakeup_means(parts, 10, 2_000_000_000, false);
        assert_eq!(untold, (Some(3_000.0), [None; 3]));
        assert_eq!(wakeup_means(parts, 10, 0, true), (None, [None; 3]));
    }
}
