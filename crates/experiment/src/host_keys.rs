// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys about the host that the rows of our VMs and of Linux guests share: the pause-loop control in force, and what KVM's
//! directed yields and the scheduler did with a vCPU.

use unspin_events::VcpuCounters;
use unspin_report::row;
use unspin_vmm::PauseLoop;

row! {
    keys;
    /// The pause-loop control in force; null where no KVM module of either maker is loaded.
    #[derive(Default)]
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
}

row! {
    keys;
    /// What KVM's directed yields and the scheduler did with a vCPU; null where nobody watched.
    pub struct SchedulingKeys {
        /// Its directed yields that KVM's candidate took: yield_to() above 0.
        yield_to_boosted: Option<u64> = ("boosted", Count),
        /// Its directed yields that were refused: yield_to() 0.
        yield_to_refused: Option<u64> = ("refused", Count),
        /// Its directed yields that failed: yield_to() below 0.
        yield_to_failed: Option<u64> = ("failed", Count),
        /// Time on a pCPU; ns.
        running_ns: Option<u64> = ("running", Nanoseconds),
        /// Time that it waited for a pCPU; ns.
        runnable_ns: Option<u64> = ("runnable", Nanoseconds),
        /// Time asleep; ns.
        asleep_ns: Option<u64> = ("asleep", Nanoseconds),
    }
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
