// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops of one thread.

use std::time::{Duration, Instant};

use super::tries;
use crate::{clock::ClockSample, ffi};

/// Of a try: 0.1 to 1 ms, so that it seldom meets a tick and the median never does.
const LOOPS: u32 = 100_000;
/// A PAUSE takes ten times as long and more.
const PAUSES: u32 = 20_000;
/// Above any number of spins here: no PAUSE at all.
const NEVER: u32 = u32::MAX;

/// An iteration of the work loop, ns.
pub fn work() -> Vec<f64> {
    // SAFETY: LOOPS is not 0.
    tries(|| per_spin_ns(LOOPS, || unsafe { ffi::driver_time_work(LOOPS) }))
}

/// A spin of the waiting loop, ns.
pub fn wait() -> Vec<f64> {
    tries(|| wait_ns(LOOPS, NEVER))
}

/// What a PAUSE adds, ns.
pub fn pause() -> Vec<f64> {
    tries(|| (wait_ns(PAUSES, 1) - wait_ns(PAUSES, NEVER)).max(0.0))
}

fn wait_ns(spins: u32, pause_every_spins: u32) -> f64 {
    // SAFETY: waits for a word of its own, as a thread that holds and awaits nothing.
    per_spin_ns(spins, || unsafe {
        ffi::driver_time_wait(spins, pause_every_spins)
    })
}

/// By the clock: what the TSC's cycles are worth need not be known.
fn per_spin_ns(spins: u32, run: impl Fn() -> u64) -> f64 {
    let begin = Instant::now();
    run();
    begin.elapsed().as_nanos() as f64 / f64::from(spins)
}

/// Ticks of the TSC per microsecond.
pub fn tsc_mhz() -> Vec<f64> {
    tries(|| {
        let begin = ClockSample::now();
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        begin.cycles_per_ns(ClockSample::now()) * 1_000.0
    })
}
