// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pause-loop exits waited for, and where: VEE'21's Figure 5.

use unspin_policy::{Reason, Symbol};
use unspin_report::row;

use super::{Workload, percent};
use crate::{Matrix, Symbols, VmExits};

row! {
    "ple_reasons", ["outcomes"];
    /// What a VM's pause-loop exits waited for (VEE'21, Figure 5; rulings 33 and 34).
    pub struct ReasonsRow {
        /// The recording; of several also two rows for all (ruling 33): pooled over exits, and the mean of workloads.
        pub workload: String = ("workload", Text),
        /// The VM; null in the rows for all.
        pub vm: Option<String> = ("VM", Text),
        /// Pause-loop exits.
        pub ple_exits: u64 = ("PLE exits", Count),
        /// Share that waited for a spinlock; percent.
        pub spinlock_percent: Option<f64> = ("spinlock %", Percent),
        /// Share that waited for a function call (TLB shootdown) to be answered; percent.
        pub function_call_percent: Option<f64> = ("function call %", Percent),
        /// Share in a delay loop; percent.
        pub delay_percent: Option<f64> = ("delay %", Percent),
        /// Share of other waits; percent.
        pub other_percent: Option<f64> = ("other %", Percent),
        /// Share of which nothing says; percent.
        pub unknown_percent: Option<f64> = ("unknown %", Percent),
        /// Of the exits of which symbols say lock or function call, those of which the host's events alone say the same; percent.
        pub host_agrees_percent: Option<f64> = ("host alone agrees %", Percent),
    }
}

row! {
    "ple_locations", ["outcomes"];
    /// One of the busiest places of a VM's pause-loop exits, 8 at most.
    pub struct LocationRow {
        /// The recording.
        pub workload: String = ("workload", Text),
        /// The VM.
        pub vm: String = ("VM", Text),
        /// Function and offset, or the address.
        pub location: Option<String> = ("location", Text),
        /// Pause-loop exits there.
        pub ple_exits: u64 = ("PLE exits", Count),
        /// What most of them waited for.
        pub reason: &'static str = ("mostly", Text),
        /// Share of these in `ple_exits`; percent.
        pub reason_percent: Option<f64> = ("%", Percent),
    }
}

/// Locations shown of one VM.
const LOCATIONS_SHOWN: usize = 8;

/// Exits by reason, in the order of [`Reason::ALL`].
type ByReason = [u64; Reason::ALL.len()];

fn by_reason(matrix: &Matrix) -> ByReason {
    std::array::from_fn(|reason| matrix[reason].iter().sum())
}

fn matrix(vm: &VmExits, symbols: Option<&Symbols>) -> Matrix {
    vm.locations
        .matrix(&|rip| symbols.and_then(|symbols| symbols.purpose_at(rip)))
}

/// Of the exits whose function waits for a lock or for answers, those of which the host alone, without symbols, says the
/// same, percent; `None` without symbols or such exits.
fn host_agrees_percent(vm: &VmExits, symbols: Option<&Symbols>) -> Option<f64> {
    let symbols = symbols?;
    let (mut agree, mut all) = (0, 0);
    for (rip, location) in vm.locations.iter() {
        let reason = match rip.and_then(|rip| symbols.purpose_at(rip)) {
            Some(Symbol::Spinlock) => Reason::Spinlock,
            Some(Symbol::FunctionCall) => Reason::FunctionCall,
            _ => continue,
        };
        let alone = by_reason(&vm.locations.matrix_at(rip, &|_| None));
        agree += alone[reason as usize];
        all += location.exits();
    }
    percent(agree, all)
}

fn shares(counts: &ByReason) -> Option<[f64; Reason::ALL.len()]> {
    let all: u64 = counts.iter().sum();
    (all > 0).then(|| counts.map(|count| count as f64 * 100.0 / all as f64))
}

/// Every VM's, and the two means of ruling 33; `symbols` are the guests', if known.
pub fn reasons(workloads: &[Workload], symbols: Option<&Symbols>) -> Vec<ReasonsRow> {
    let mut rows = Vec::new();
    let mut pooled = ByReason::default();
    let mut averaged = Vec::new();
    let mut push = |workload, vm, counts: &ByReason, parts: Option<[f64; 5]>, agrees| {
        let share = |reason: Reason| parts.map(|parts| parts[reason as usize]);
        rows.push(ReasonsRow {
            workload,
            vm,
            ple_exits: counts.iter().sum(),
            spinlock_percent: share(Reason::Spinlock),
            function_call_percent: share(Reason::FunctionCall),
            delay_percent: share(Reason::Delay),
            other_percent: share(Reason::Other),
            unknown_percent: share(Reason::Unknown),
            host_agrees_percent: agrees,
        });
    };
    for workload in workloads {
        let mut whole = ByReason::default();
        for (_, vm_name, vm) in workload.vms() {
            let counts = by_reason(&matrix(vm, symbols));
            let agrees = host_agrees_percent(vm, symbols);
            let name = workload.name.clone();
            push(name, Some(vm_name), &counts, shares(&counts), agrees);
            add(&mut whole, &counts);
        }
        add(&mut pooled, &whole);
        averaged.extend(shares(&whole));
    }
    if workloads.len() > 1 {
        push(
            "all, pooled over exits".into(),
            None,
            &pooled,
            shares(&pooled),
            None,
        );
        let count = averaged.len() as f64;
        let mean = (count > 0.0).then(|| {
            std::array::from_fn(|reason| {
                averaged.iter().map(|shares| shares[reason]).sum::<f64>() / count
            })
        });
        push("all, mean of workloads".into(), None, &pooled, mean, None);
    }
    rows
}

fn add(sum: &mut ByReason, more: &ByReason) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// The busiest locations of each VM, by the guests' symbols, if known.
pub fn locations(workloads: &[Workload], symbols: Option<&Symbols>) -> Vec<LocationRow> {
    let mut rows = Vec::new();
    for workload in workloads {
        for (_, name, vm) in workload.vms() {
            let mut busiest: Vec<_> = vm.locations.iter().collect();
            busiest.sort_by_key(|(rip, location)| (std::cmp::Reverse(location.exits()), *rip));
            for (rip, location) in busiest.into_iter().take(LOCATIONS_SHOWN) {
                let purpose = |rip| symbols.and_then(|symbols| symbols.purpose_at(rip));
                let counts = by_reason(&vm.locations.matrix_at(rip, &purpose));
                let most = Reason::ALL.into_iter().rev();
                let most = most.max_by_key(|reason| counts[*reason as usize]);
                let most = most.unwrap_or(Reason::Unknown);
                rows.push(LocationRow {
                    workload: workload.name.clone(),
                    vm: name.clone(),
                    location: rip.map(|rip| location_name(rip, symbols)),
                    ple_exits: location.exits(),
                    reason: most.name(),
                    reason_percent: percent(counts[most as usize], location.exits()),
                });
            }
        }
    }
    rows
}

/// A code location as people know it.
fn location_name(rip: u64, symbols: Option<&Symbols>) -> String {
    match symbols.and_then(|symbols| symbols.function_at(rip)) {
        Some((function, offset)) => format!("{function}+{offset:#x}"),
        None => format!("{rip:#x}"),
    }
}
