// SPDX-License-Identifier: MIT OR Apache-2.0
//! APPLE's inefficiency: `policy/model/inefficiency.h`.

use crate::raw;

/// Pause-loop exits of an epoch (rulings 18 and 19).
pub const EPOCH_EXITS: u64 = raw::UNSPIN_EPOCH_EXITS as u64;
/// The shortest time of one PAUSE in a waiting loop, ps.
pub const PAUSE_LEAST_PS: u64 = raw::UNSPIN_PAUSE_LEAST_PS as u64;

/// One VM's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(raw::unspin_epoch);

impl Epoch {
    /// An epoch of these exits, from their sums; all windows are known.
    pub fn of_sums(exits: u64, window_units: u64, handling_ns: u64, cpu_ns: u64) -> Epoch {
        Epoch(raw::unspin_epoch {
            exits,
            window_units,
            windows_unknown: 0,
            handling_ns,
            cpu_ns,
        })
    }

    /// Adds an exit with the window in force (AMD: PAUSEs; Intel: TSC cycles). Returns whether the epoch is complete.
    pub fn add_exit(&mut self, window: Option<u32>) -> bool {
        // A window of exactly the number that means "unknown" (2 s of TSC cycles) is taken for unknown.
        let window = window.unwrap_or(raw::UNSPIN_UNKNOWN_HALF);
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_epoch_add_exit(&mut self.0, window) }
    }

    /// Adds the handling time of one of its exits (ruling 17), ns.
    pub fn add_handling(&mut self, ns: u64) {
        self.0.handling_ns = self.0.handling_ns.saturating_add(ns);
    }

    /// Adds CPU time of one of the VM's vCPU threads, ns.
    pub fn add_cpu(&mut self, ns: u64) {
        self.0.cpu_ns = self.0.cpu_ns.saturating_add(ns);
    }

    /// Exits so far.
    pub fn exits(&self) -> u64 {
        self.0.exits
    }

    /// Handling time so far, ns.
    pub fn handling_ns(&self) -> u64 {
        self.0.handling_ns
    }

    /// CPU time so far, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.0.cpu_ns
    }

    /// The sum of the windows in force at its exits, in their unit; `None` if any is unknown.
    pub fn window_units(&self) -> Option<u64> {
        (self.0.windows_unknown == 0).then_some(self.0.window_units)
    }

    /// The mean window in force, in its unit; `None` if any is unknown or there are no exits.
    pub fn mean_window(&self) -> Option<f64> {
        let known = self.0.exits > 0 && self.0.windows_unknown == 0;
        known.then(|| self.0.window_units as f64 / self.0.exits as f64)
    }

    /// Inefficiency in ppm. `unit_ps`: the time of one unit of the window, ps. `None` if a window, the unit or the CPU
    /// time is unknown.
    pub fn inefficiency_ppm(&self, unit_ps: Option<u64>) -> Option<u64> {
        let unknown = raw::UNSPIN_UNKNOWN as u64;
        // SAFETY: reads a valid struct for the length of the call.
        let ppm = unsafe { raw::unspin_inefficiency_ppm(&self.0, unit_ps.unwrap_or(unknown)) };
        (ppm != unknown).then_some(ppm)
    }
}

/// Whether exits that spent `inside_ns` in the guest in all can have had windows of `units` in all, if each unit takes
/// at least `least_unit_ps`.
pub fn window_is_honoured(inside_ns: u64, units: u64, least_unit_ps: u64) -> bool {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_window_is_honoured(inside_ns, units, least_unit_ps) }
}

/// Whether a window of this many units was spun through quicker per unit than the quickest so far (`quickest_units` 0:
/// there is none yet). False for times of 0 or of 4 s and more.
pub fn window_is_quicker(
    inside_ns: u64,
    units: u64,
    quickest_ns: u64,
    quickest_units: u64,
) -> bool {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_window_is_quicker(inside_ns, units, quickest_ns, quickest_units) }
}

/// The time of one unit of the window, ps, from one that was spun through; `None`: there was none, or the hardware
/// ignores windows.
pub fn window_unit_ps(inside_ns: u64, units: u64, least_unit_ps: u64) -> Option<u64> {
    // SAFETY: a function of numbers alone.
    let unit_ps = unsafe { raw::unspin_window_unit_ps(inside_ns, units, least_unit_ps) };
    (unit_ps != raw::UNSPIN_UNKNOWN as u64).then_some(unit_ps)
}
