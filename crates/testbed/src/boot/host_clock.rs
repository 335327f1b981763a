// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frequency of this machine's time-stamp counter, which the emulated machine's counter shows too.
//!
//! QEMU's RDTSC under TCG without icount is the host's own (`cpu_get_host_ticks`, include/qemu/timer.h, QEMU 10.0). A
//! kernel that calibrates it against emulated timers while the host holds its CPUs up gets it wrong, by a factor of two
//! on a busy machine, and every time measured in the testbed with it. So it is told (`tsc_early_khz`).

use std::{
    arch::x86_64::_rdtsc,
    time::{Duration, Instant},
};

/// How long is measured: an error of a microsecond at each end is then one in ten thousand.
const SPAN: Duration = Duration::from_millis(20);
/// Readings at each end, of which the least disturbed counts.
const READINGS: usize = 100;

/// Measures the counter in kHz. Takes 20 ms.
pub fn tsc_khz() -> u64 {
    let (first_ticks, first_time) = reading();
    std::thread::sleep(SPAN);
    let (last_ticks, last_time) = reading();
    let nanoseconds = last_time.duration_since(first_time).as_nanos().max(1);
    let ticks = u128::from(last_ticks.wrapping_sub(first_ticks));
    (ticks * 1_000_000 / nanoseconds) as u64
}

/// Counter and clock at the same moment: of many pairs the one between whose counter readings the least passed.
fn reading() -> (u64, Instant) {
    let pair = || {
        let before = ticks();
        let time = Instant::now();
        let after = ticks();
        (after.wrapping_sub(before), (before, time))
    };
    let (mut shortest, mut best) = pair();
    for (length, candidate) in std::iter::repeat_with(pair).take(READINGS) {
        if length < shortest {
            (shortest, best) = (length, candidate);
        }
    }
    best
}

fn ticks() -> u64 {
    // SAFETY: reads a counter that every x86-64 CPU has; no memory is touched.
    unsafe { _rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_agree_and_are_those_of_a_cpu() {
        let (first, second) = (tsc_khz(), tsc_khz());
        assert!((400_000..20_000_000).contains(&first), "{first} kHz");
        assert!(
            first.abs_diff(second) * 500 < first,
            "{first} and {second} kHz"
        );
    }
}
