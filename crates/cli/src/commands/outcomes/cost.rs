// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables beside the outcomes of pause-loop exits: what they cost (inefficiency), and the IPI record.

use std::collections::BTreeMap;

use unspin_analysis::{Epochs, ReceiverState, WindowUnit};
use unspin_report::{Cell, Column, Table, Unit};

use crate::commands::outcomes::tables::Workload;

const INEFFICIENCY: &[Column] = &[
    Column::new("workload", "workload", Unit::Text),
    Column::new("vm", "VM", Unit::Text),
    Column::new("epochs", "epochs", Unit::Count),
    Column::new("epochs_known", "known", Unit::Count),
    Column::new("mean_window", "mean window", Unit::Count),
    Column::new("window_unit", "of", Unit::Text),
    Column::new("unit_ns", "one takes", Unit::Nanoseconds),
    Column::new("inefficiency_percent", "inefficiency %", Unit::Percent),
    Column::new("least_percent", "least", Unit::Percent),
    Column::new("largest_percent", "largest", Unit::Percent),
    Column::new("guest_spin_percent", "guest: spinning %", Unit::Percent),
    Column::new("unknown_because", "not known because", Unit::Text),
];

const EPOCHS: &[Column] = &[
    Column::json_only("workload", Unit::Text),
    Column::json_only("vm", Unit::Text),
    Column::json_only("epoch", Unit::Count),
    Column::json_only("begin_ns", Unit::Nanoseconds),
    Column::json_only("end_ns", Unit::Nanoseconds),
    Column::json_only("mean_window", Unit::Count),
    Column::json_only("handling_ns", Unit::Nanoseconds),
    Column::json_only("cpu_ns", Unit::Nanoseconds),
    Column::json_only("inefficiency_percent", Unit::Percent),
];

const IPIS: &[Column] = &[
    Column::new("workload", "workload", Unit::Text),
    Column::new("vm", "VM", Unit::Text),
    Column::new("form", "form", Unit::Text),
    Column::new("vector", "vector", Unit::Text),
    Column::new("receivers", "receivers", Unit::Count),
    Column::new("running_percent", "running %", Unit::Percent),
    Column::new("preempted_in_user_percent", "in user %", Unit::Percent),
    Column::new("preempted_in_kernel_percent", "in kernel %", Unit::Percent),
    Column::new("preempted_percent", "mode unknown %", Unit::Percent),
    Column::new("woken_percent", "woken %", Unit::Percent),
    Column::new("halted_percent", "halted %", Unit::Percent),
    Column::new("unknown_percent", "unknown %", Unit::Percent),
    Column::new("delay_median_ns", "median", Unit::Nanoseconds),
    Column::new("delay_99_percent_ns", "99 %", Unit::Nanoseconds),
    Column::new("delay_longest_ns", "longest", Unit::Nanoseconds),
    Column::json_only("delays", Unit::Count),
    Column::json_only("delays_unknown", Unit::Count),
];

const LONGEST: &[Column] = &[
    Column::json_only("workload", Unit::Text),
    Column::json_only("vm", Unit::Text),
    Column::json_only("sent_ns", Unit::Nanoseconds),
    Column::json_only("sender", Unit::Count),
    Column::json_only("receiver", Unit::Count),
    Column::json_only("vector", Unit::Count),
    Column::json_only("receiver_state", Unit::Text),
    Column::json_only("delay_ns", Unit::Nanoseconds),
];

/// Spinning share of CPU time by workload and VM, percent, where the guests told it.
pub type GuestSpinning = BTreeMap<(String, u32), f64>;

/// All tables.
pub fn tables(workloads: &[Workload<'_>], guest: &GuestSpinning) -> Vec<Table> {
    vec![
        inefficiency_table(workloads, guest),
        epochs_table(workloads),
        ipi_table(workloads),
        longest_table(workloads),
    ]
}

/// Why the time of a window is not known; `None`: it is.
fn unknown_because(epochs: &Epochs, unit: WindowUnit, exits: u64) -> Option<&'static str> {
    if exits == 0 {
        return Some("no pause-loop exits: disabled, or nobody spun for so long");
    }
    match (unit, epochs.measured_ps(), epochs.window_is_honoured(unit)) {
        (WindowUnit::Unknown, ..) => Some("neither kvm_amd nor kvm_intel is known"),
        (WindowUnit::Cycles { tsc_khz: None }, ..) => Some("the TSC's frequency is not known"),
        (_, None, _) => Some("no exit spun through a whole window, or windows are hidden"),
        (.., Some(false)) => Some("the window is ignored: exits come more often than it allows"),
        _ if epochs.ended().is_empty() => Some("fewer than 1,000 exits"),
        _ if epochs.ended().iter().all(|epoch| !epoch.whole) => Some("events are missing"),
        _ => None,
    }
}

/// Inefficiency of every epoch in percent, where known.
fn epoch_percents(epochs: &Epochs, unit: WindowUnit) -> Vec<Option<f64>> {
    let unit_ps = epochs.unit_ps(unit);
    let percent = |ppm: u64| ppm as f64 / 1e4;
    epochs
        .ended()
        .iter()
        .map(|ended| {
            let known = unit_ps.filter(|_| ended.whole);
            ended.epoch.inefficiency_ppm(known).map(percent)
        })
        .collect()
}

fn inefficiency_table(workloads: &[Workload<'_>], guest: &GuestSpinning) -> Table {
    let title = "Inefficiency: windows spun through and exits handled, of the vCPUs' CPU time, over epochs of 1,000 exits \
                 (APPLE; ruling 17)";
    let mut table = Table::new("inefficiency", title, INEFFICIENCY);
    for workload in workloads {
        let unit = workload.exits.sight.window_unit;
        for (&number, vm) in &workload.exits.vms {
            let epochs = &vm.epochs;
            let known: Vec<f64> = epoch_percents(epochs, unit).into_iter().flatten().collect();
            let windows: Option<Vec<f64>> = epochs
                .ended()
                .iter()
                .map(|ended| ended.epoch.mean_window())
                .collect();
            let key = (workload.name.clone(), number);
            table.push(vec![
                workload.name.clone().into(),
                workload.vm_name(number).into(),
                (epochs.ended().len() as u64 + epochs.left_out()).into(),
                known.len().into(),
                windows.and_then(|windows| mean(&windows)).into(),
                match unit {
                    WindowUnit::Unknown => Cell::Unknown,
                    WindowUnit::Pauses => "PAUSEs".into(),
                    WindowUnit::Cycles { .. } => "cycles".into(),
                },
                epochs.unit_ps(unit).map(|ps| ps as f64 / 1e3).into(),
                mean(&known).into(),
                known.iter().copied().reduce(f64::min).into(),
                known.iter().copied().reduce(f64::max).into(),
                guest.get(&key).copied().into(),
                unknown_because(epochs, unit, vm.exits()).into(),
            ]);
        }
    }
    table
}

fn epochs_table(workloads: &[Workload<'_>]) -> Table {
    let mut table = Table::new("epoch", "", EPOCHS);
    for workload in workloads {
        for (&number, vm) in &workload.exits.vms {
            let percents = epoch_percents(&vm.epochs, workload.exits.sight.window_unit);
            for (index, (ended, percent)) in vm.epochs.ended().iter().zip(percents).enumerate() {
                table.push(vec![
                    workload.name.clone().into(),
                    workload.vm_name(number).into(),
                    index.into(),
                    ended.begin_ns.into(),
                    ended.end_ns.into(),
                    ended.epoch.mean_window().into(),
                    ended.epoch.handling_ns().into(),
                    ended.epoch.cpu_ns().into(),
                    percent.into(),
                ]);
            }
        }
    }
    table
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn ipi_table(workloads: &[Workload<'_>]) -> Table {
    let title =
        "IPIs: what their receivers were doing, and how long those off their pCPU took to get one";
    let mut table = Table::new("ipi", title, IPIS);
    for workload in workloads {
        for (&(vm, form, vector), sums) in workload.exits.ipis.sums() {
            let receivers = sums.receivers();
            let share = |state: ReceiverState| {
                let count = sums.by_state.get(&state).copied().unwrap_or(0);
                Cell::from(count as f64 * 100.0 / receivers as f64)
            };
            let mut row = vec![
                workload.name.clone().into(),
                workload.vm_name(vm).into(),
                form_name(form).into(),
                format!("{vector:#x}").into(),
                receivers.into(),
            ];
            row.extend(ReceiverState::ALL.map(share));
            row.extend([
                sums.delay.percentile_ns(50).into(),
                sums.delay.percentile_ns(99).into(),
                sums.delay.largest_ns().into(),
                sums.delay.count().into(),
                sums.delay_unknown.into(),
            ]);
            table.push(row);
        }
    }
    table
}

fn form_name(form: unspin_events::IpiForm) -> &'static str {
    use unspin_events::IpiForm;
    match form {
        IpiForm::Unknown => "unknown",
        IpiForm::Physical => "physical",
        IpiForm::Logical => "logical",
        IpiForm::OneSelf => "self",
        IpiForm::All => "all",
        IpiForm::AllButSelf => "all but self",
        IpiForm::Hypercall => "hypercall",
    }
}

fn longest_table(workloads: &[Workload<'_>]) -> Table {
    let mut table = Table::new("ipi_longest", "", LONGEST);
    for workload in workloads {
        for ipi in workload.exits.ipis.longest() {
            table.push(vec![
                workload.name.clone().into(),
                workload.vm_name(ipi.vm).into(),
                ipi.sent_ns.into(),
                u64::from(ipi.sender).into(),
                u64::from(ipi.receiver).into(),
                u64::from(ipi.vector).into(),
                ipi.state.name().into(),
                ipi.delay_ns.into(),
            ]);
        }
    }
    table
}
