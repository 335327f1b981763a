// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns about the host that the tables of our VMs and of Linux guests share: the pause-loop control in force, and what
//! KVM's directed yields and the scheduler did with a vCPU.

use unspin_events::VcpuCounters;
use unspin_report::{Cell, Column, Unit};
use unspin_vmm::PauseLoop;

/// Of `pause_loop_cells`.
pub const PAUSE_LOOP: [Column; 5] = [
    Column::json_only("ple_module", Unit::Text),
    Column::json_only("ple_window", Unit::Count),
    Column::json_only("ple_gap", Unit::Count),
    Column::json_only("ple_grow", Unit::Count),
    Column::json_only("ple_shrink", Unit::Count),
];

/// Of `scheduling_cells`.
pub const SCHEDULING: [Column; 6] = [
    Column::new("yield_to_boosted", "boosted", Unit::Count),
    Column::new("yield_to_refused", "refused", Unit::Count),
    Column::new("yield_to_failed", "failed", Unit::Count),
    Column::new("running_ns", "running", Unit::Nanoseconds),
    Column::new("runnable_ns", "runnable", Unit::Nanoseconds),
    Column::new("asleep_ns", "asleep", Unit::Nanoseconds),
];

/// Unknown where no KVM module of either maker is loaded.
pub fn pause_loop_cells(found: Option<&PauseLoop>) -> [Cell; 5] {
    [
        found.map(|found| found.module).into(),
        found.map(|found| found.window).into(),
        found.map(|found| found.gap).into(),
        found.map(|found| found.grow).into(),
        found.map(|found| found.shrink).into(),
    ]
}

/// The same for people.
pub fn format_pause_loop(found: Option<&PauseLoop>) -> String {
    match found {
        Some(found) => format!(
            "{}: pause-loop window {}, gap {}, grow {}, shrink {}",
            found.module, found.window, found.gap, found.grow, found.shrink
        ),
        None => "no pause-loop exits (neither kvm_amd nor kvm_intel)".into(),
    }
}

/// Unknown where nobody watched.
pub fn scheduling_cells(counters: Option<&VcpuCounters>) -> [Cell; 6] {
    let of = |value: fn(&VcpuCounters) -> u64| -> Cell { counters.map(value).into() };
    [
        of(|counters| counters.yield_to_boosted),
        of(|counters| counters.yield_to_refused),
        of(|counters| counters.yield_to_failed),
        of(|counters| counters.running_ns),
        of(|counters| counters.runnable_ns),
        of(|counters| counters.asleep_ns),
    ]
}
