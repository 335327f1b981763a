// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns about the host that the tables of our VMs and of Linux guests share: the pause-loop control in force, and what
//! KVM's directed yields and the scheduler did with a vCPU.

use schemars::JsonSchema;
use serde::Serialize;
use unspin_events::VcpuCounters;
use unspin_report::{Cell, Column, Unit};
use unspin_vmm::PauseLoop;

/// The pause-loop control in force; null where no KVM module of either maker is loaded.
#[derive(Default, Serialize, JsonSchema)]
pub struct PauseLoopKeys {
    /// KVM's module: `kvm_amd` or `kvm_intel`.
    ple_module: Option<&'static str>,
    /// The pause-loop window; PAUSEs (AMD), TSC cycles (Intel); 0: no pause-loop exits.
    ple_window: Option<u32>,
    /// The largest gap between two PAUSEs of one loop; cycles.
    ple_gap: Option<u32>,
    /// By what KVM grows the window after an exit; 1: not at all.
    ple_grow: Option<u32>,
    /// By what KVM shrinks it when the vCPU is scheduled in; 0: back to the start; 1: not at all.
    ple_shrink: Option<u32>,
}

/// What KVM's directed yields and the scheduler did with a vCPU; null where nobody watched.
#[derive(Serialize, JsonSchema)]
pub struct SchedulingKeys {
    /// Its directed yields that KVM's candidate took: yield_to() above 0.
    yield_to_boosted: Option<u64>,
    /// Its directed yields that were refused: yield_to() 0.
    yield_to_refused: Option<u64>,
    /// Its directed yields that failed: yield_to() below 0.
    yield_to_failed: Option<u64>,
    /// Time on a pCPU; ns.
    running_ns: Option<u64>,
    /// Time that it waited for a pCPU; ns.
    runnable_ns: Option<u64>,
    /// Time asleep; ns.
    asleep_ns: Option<u64>,
}

impl PauseLoopKeys {
    /// Of what was found.
    pub fn of(found: Option<&PauseLoop>) -> PauseLoopKeys {
        let Some(found) = found else {
            return PauseLoopKeys::default();
        };
        PauseLoopKeys {
            ple_module: Some(found.module),
            ple_window: Some(found.window),
            ple_gap: Some(found.gap),
            ple_grow: Some(found.grow),
            ple_shrink: Some(found.shrink),
        }
    }
}

impl SchedulingKeys {
    /// Of what the observer counted.
    pub fn of(counters: Option<&VcpuCounters>) -> SchedulingKeys {
        SchedulingKeys {
            yield_to_boosted: counters.map(|counters| counters.yield_to_boosted),
            yield_to_refused: counters.map(|counters| counters.yield_to_refused),
            yield_to_failed: counters.map(|counters| counters.yield_to_failed),
            running_ns: counters.map(|counters| counters.running_ns),
            runnable_ns: counters.map(|counters| counters.runnable_ns),
            asleep_ns: counters.map(|counters| counters.asleep_ns),
        }
    }
}

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
