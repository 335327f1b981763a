// SPDX-License-Identifier: MIT OR Apache-2.0
//! TSC cycles in nanoseconds, and work given in nanoseconds in loops.

use std::time::{Duration, Instant};

use unspin_abi::{UNSPIN_QUANTILES, unspin_distribution};
use unspin_scenario::{Distribution, WorkUnit};

use crate::ffi;

/// One look at both clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockSample {
    tsc: u64,
    at: Instant,
}

impl ClockSample {
    /// Now.
    pub fn now() -> Self {
        // SAFETY: reads a register.
        let tsc = unsafe { ffi::driver_tsc() };
        ClockSample {
            tsc,
            at: Instant::now(),
        }
    }

    /// TSC cycles per nanosecond between the two; they should lie 10 ms or more apart.
    pub fn cycles_per_ns(self, later: ClockSample) -> f64 {
        let ns = later.at.duration_since(self.at).as_nanos() as f64;
        later.tsc.wrapping_sub(self.tsc) as f64 / ns.max(1.0)
    }
}

/// Iterations of the work loop per nanosecond on this CPU, from the fastest of several timings (some 20 ms).
pub fn loops_per_ns() -> f64 {
    const LOOPS: u32 = 200_000;
    // SAFETY: LOOPS is not 0.
    f64::from(LOOPS) / least_ns(30, || unsafe { ffi::driver_time_work(LOOPS) })
}

/// Spins of waiting per place in the preemptable ticket lock's queue.
pub fn tau_spins() -> u32 {
    // SAFETY: a constant.
    unsafe { ffi::driver_tau_spins }
}

/// Nanoseconds that those spins take on this CPU, from the fastest of several timings (ruling 8: measured, printed).
pub fn tau_ns(pause_every_spins: u32) -> f64 {
    let spins = tau_spins();
    // SAFETY: waits for a word of its own, as a thread that holds and awaits nothing.
    least_ns(20, || unsafe {
        ffi::driver_time_wait(spins, pause_every_spins)
    })
}

/// The least of so many timings in TSC cycles, as nanoseconds.
fn least_ns(timings: u32, time_cycles: impl Fn() -> u64) -> f64 {
    let begin = ClockSample::now();
    let least = (0..timings).map(|_| time_cycles()).min().unwrap_or(0);
    std::thread::sleep(Duration::from_millis(10));
    least.max(1) as f64 / begin.cycles_per_ns(ClockSample::now())
}

/// The distribution in loops, at that rate if it is in nanoseconds. Values above 2^32 - 1 loops are cut there.
pub fn in_loops(distribution: &Distribution, loops_per_ns: f64) -> unspin_distribution {
    let mut loops = unspin_distribution {
        quantile_loops: [0; UNSPIN_QUANTILES as usize],
    };
    let table = distribution.quantile_table();
    for (entry, value) in loops.quantile_loops.iter_mut().zip(table) {
        let value = match distribution.unit {
            WorkUnit::Loops => value,
            WorkUnit::Nanoseconds => (value as f64 * loops_per_ns).round() as u64,
        };
        *entry = u32::try_from(value).unwrap_or(u32::MAX);
    }
    loops
}
