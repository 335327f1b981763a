// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pause-loop exits cost (inefficiency), and the IPIs beside them.

use unspin_events::IpiForm;
use unspin_report::row;

use super::{Workload, mean};
use crate::{Epochs, ReceiverState, WindowUnit};

row! {
    "inefficiency", ["outcomes"];
    /// What a VM's pause-loop exits cost, over epochs of 1,000 exits (APPLE; ruling 17).
    pub struct InefficiencyRow {
        /// The recording.
        pub workload: String = ("workload", Text),
        /// The VM.
        pub vm: String = ("VM", Text),
        /// Epochs.
        pub epochs: u64 = ("epochs", Count),
        /// Epochs of which the inefficiency is known.
        pub epochs_known: usize = ("known", Count),
        /// Mean window; `window_unit`.
        pub mean_window: Option<f64> = ("mean window", Count),
        /// What windows count: `PAUSEs` (AMD) or `cycles` of the TSC (Intel).
        pub window_unit: Option<&'static str> = ("of", Text),
        /// How long one of them takes; ns.
        pub unit_ns: Option<f64> = ("one takes", Nanoseconds),
        /// Windows spun through and exits handled, of the vCPUs' CPU time, mean of epochs; percent.
        pub inefficiency_percent: Option<f64> = ("inefficiency %", Percent),
        /// Least of an epoch; percent.
        pub least_percent: Option<f64> = ("least", Percent),
        /// Largest of an epoch; percent.
        pub largest_percent: Option<f64> = ("largest", Percent),
        /// Share of CPU time that the guest itself says it spun; percent.
        pub guest_spin_percent: Option<f64> = ("guest: spinning %", Percent),
        /// Why nothing is known; null: it is.
        pub unknown_because: Option<&'static str> = ("not known because", Text),
    }
}

row! {
    "epoch", ["outcomes"];
    /// One epoch of 1,000 pause-loop exits of a VM.
    pub struct EpochRow {
        /// The recording.
        pub workload: String,
        /// The VM.
        pub vm: String,
        /// Its number, from 0.
        pub epoch: usize,
        /// When it began, host's monotonic clock; ns.
        pub begin_ns: u64,
        /// When it ended, same clock; ns.
        pub end_ns: u64,
        /// Mean window; `window_unit` of the table inefficiency.
        pub mean_window: Option<f64>,
        /// Time in which its exits were handled; ns.
        pub handling_ns: u64,
        /// CPU time of the VM's vCPUs in it; ns.
        pub cpu_ns: u64,
        /// Share of that spun through windows and handling exits; percent.
        pub inefficiency_percent: Option<f64>,
    }
}

row! {
    "ipi", ["outcomes"];
    /// IPIs within a VM, of one form and vector: what receivers were doing, and how long those off their pCPU took to get one.
    pub struct IpiRow {
        /// The recording.
        pub workload: String = ("workload", Text),
        /// The VM.
        pub vm: String = ("VM", Text),
        /// How receivers were named.
        pub form: &'static str = ("form", Text),
        /// The interrupt vector, hexadecimal.
        pub vector: String = ("vector", Text),
        /// Receivers, one for each IPI that each got.
        pub receivers: u64 = ("receivers", Count),
        /// Share of receivers that were running; percent.
        pub running_percent: f64 = ("running %", Percent),
        /// Share that was preempted in user mode; percent.
        pub preempted_in_user_percent: f64 = ("in user %", Percent),
        /// Share that was preempted in its kernel; percent.
        pub preempted_in_kernel_percent: f64 = ("in kernel %", Percent),
        /// Share that was preempted, mode not known; percent.
        pub preempted_percent: f64 = ("mode unknown %", Percent),
        /// Share that had been woken and waited for a pCPU; percent.
        pub woken_percent: f64 = ("woken %", Percent),
        /// Share that was halted; percent.
        pub halted_percent: f64 = ("halted %", Percent),
        /// Share of which events do not say; percent.
        pub unknown_percent: f64 = ("unknown %", Percent),
        /// Median time until a receiver off its pCPU ran; ns.
        pub delay_median_ns: Option<u64> = ("median", Nanoseconds),
        /// Time that 99 of 100 did not exceed; ns.
        pub delay_99_percent_ns: Option<u64> = ("99 %", Nanoseconds),
        /// The longest such time; ns.
        pub delay_longest_ns: Option<u64> = ("longest", Nanoseconds),
        /// Such times that are known.
        pub delays: u64,
        /// Such times that are not known.
        pub delays_unknown: u64,
    }
}

row! {
    "ipi_longest", ["outcomes"];
    /// One of the IPIs that took the longest to arrive.
    pub struct LongestRow {
        /// The recording.
        pub workload: String,
        /// The VM.
        pub vm: String,
        /// When it was sent, host's monotonic clock; ns.
        pub sent_ns: u64,
        /// The vCPU that sent it.
        pub sender: u16,
        /// The vCPU that got it.
        pub receiver: u16,
        /// The interrupt vector.
        pub vector: u32,
        /// What the receiver was doing.
        pub receiver_state: &'static str,
        /// How long it took until the receiver ran; ns.
        pub delay_ns: Option<u64>,
    }
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

/// What each VM's exits cost.
pub fn inefficiency(workloads: &[Workload]) -> Vec<InefficiencyRow> {
    let mut rows = Vec::new();
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
            rows.push(InefficiencyRow {
                workload: workload.name.clone(),
                vm: workload.vm_name(number),
                epochs: epochs.ended().len() as u64 + epochs.left_out(),
                epochs_known: known.len(),
                mean_window: windows.and_then(|windows| mean(&windows)),
                window_unit: match unit {
                    WindowUnit::Unknown => None,
                    WindowUnit::Pauses => Some("PAUSEs"),
                    WindowUnit::Cycles { .. } => Some("cycles"),
                },
                unit_ns: epochs.unit_ps(unit).map(|ps| ps as f64 / 1e3),
                inefficiency_percent: mean(&known),
                least_percent: known.iter().copied().reduce(f64::min),
                largest_percent: known.iter().copied().reduce(f64::max),
                guest_spin_percent: workload.guest_spin_percent.get(&number).copied(),
                unknown_because: unknown_because(epochs, unit, vm.exits()),
            });
        }
    }
    rows
}

/// Every epoch of each VM.
pub fn epochs(workloads: &[Workload]) -> Vec<EpochRow> {
    let mut rows = Vec::new();
    for workload in workloads {
        for (&number, vm) in &workload.exits.vms {
            let percents = epoch_percents(&vm.epochs, workload.exits.sight.window_unit);
            for (index, (ended, percent)) in vm.epochs.ended().iter().zip(percents).enumerate() {
                rows.push(EpochRow {
                    workload: workload.name.clone(),
                    vm: workload.vm_name(number),
                    epoch: index,
                    begin_ns: ended.begin_ns,
                    end_ns: ended.end_ns,
                    mean_window: ended.epoch.mean_window(),
                    handling_ns: ended.epoch.handling_ns(),
                    cpu_ns: ended.epoch.cpu_ns(),
                    inefficiency_percent: percent,
                });
            }
        }
    }
    rows
}

/// IPIs by VM, form and vector.
pub fn ipis(workloads: &[Workload]) -> Vec<IpiRow> {
    let mut rows = Vec::new();
    for workload in workloads {
        for (&(vm, form, vector), sums) in workload.exits.ipis.sums() {
            let receivers = sums.receivers();
            let share = |state: ReceiverState| {
                let count = sums.by_state.get(&state).copied().unwrap_or(0);
                count as f64 * 100.0 / receivers as f64
            };
            rows.push(IpiRow {
                workload: workload.name.clone(),
                vm: workload.vm_name(vm),
                form: form_name(form),
                vector: format!("{vector:#x}"),
                receivers,
                running_percent: share(ReceiverState::Running),
                preempted_in_user_percent: share(ReceiverState::PreemptedInUser),
                preempted_in_kernel_percent: share(ReceiverState::PreemptedInKernel),
                preempted_percent: share(ReceiverState::Preempted),
                woken_percent: share(ReceiverState::Woken),
                halted_percent: share(ReceiverState::Halted),
                unknown_percent: share(ReceiverState::Unknown),
                delay_median_ns: sums.delay.percentile_ns(50),
                delay_99_percent_ns: sums.delay.percentile_ns(99),
                delay_longest_ns: sums.delay.largest_ns(),
                delays: sums.delay.count(),
                delays_unknown: sums.delay_unknown,
            });
        }
    }
    rows
}

fn form_name(form: IpiForm) -> &'static str {
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

/// The IPIs that took the longest to arrive.
pub fn longest_ipis(workloads: &[Workload]) -> Vec<LongestRow> {
    let mut rows = Vec::new();
    for workload in workloads {
        for ipi in workload.exits.ipis.longest() {
            rows.push(LongestRow {
                workload: workload.name.clone(),
                vm: workload.vm_name(ipi.vm),
                sent_ns: ipi.sent_ns,
                sender: ipi.sender,
                receiver: ipi.receiver,
                vector: ipi.vector.into(),
                receiver_state: ipi.state.name(),
                delay_ns: ipi.delay_ns,
            });
        }
    }
    rows
}
