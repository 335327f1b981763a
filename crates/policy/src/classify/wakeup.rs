// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a woken task's latency: `policy/classify/wakeup.h`.

use crate::raw;

/// One wake-up, as the guest records it: times by a TSC that all vCPUs share, steal times of the task's vCPU in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// When the task was woken.
    pub woken_tsc: u64,
    /// Steal time then.
    pub woken_stolen_ns: u64,
    /// When the last HLT of its vCPU ended; before the wake-up if it was not halted.
    pub halt_end_tsc: u64,
    /// Steal time then.
    pub halt_end_stolen_ns: u64,
    /// When the task ran.
    pub now_tsc: u64,
    /// Steal time then.
    pub now_stolen_ns: u64,
    /// TSC cycles per millisecond; `None`: not known, and nothing is attributed to the host.
    pub tsc_khz: Option<u64>,
}

/// The parts, TSC cycles; their sum is the time from the wake-up until the task ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeupParts {
    /// Until the halted vCPU had left HLT, without time in the host's run queue: exit and IPI.
    pub exit_cycles: u64,
    /// Time in the host's run queue.
    pub host_cycles: u64,
    /// Time behind other tasks of the guest.
    pub guest_cycles: u64,
}

impl Wakeup {
    /// Its three parts.
    pub fn split(&self) -> WakeupParts {
        let wakeup = raw::unspin_wakeup {
            woken_tsc: self.woken_tsc,
            woken_stolen_ns: self.woken_stolen_ns,
            halt_end_tsc: self.halt_end_tsc,
            halt_end_stolen_ns: self.halt_end_stolen_ns,
            now_tsc: self.now_tsc,
            now_stolen_ns: self.now_stolen_ns,
            tsc_khz: self.tsc_khz.unwrap_or(0),
        };
        let mut parts = raw::unspin_wakeup_parts::default();
        // SAFETY: both pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_wakeup_split(&wakeup, &mut parts) };
        WakeupParts {
            exit_cycles: parts.exit,
            host_cycles: parts.host,
            guest_cycles: parts.guest,
        }
    }
}
