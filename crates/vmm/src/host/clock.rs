// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests' clock (TSC) beside the host's (CLOCK_MONOTONIC).
use std::arch::x86_64::{_mm_lfence, _rdtsc};

use unspin_events::ClockSample;

/// Brackets that [`sample`] tries: the narrowest wins, so one undisturbed try is enough.
const BRACKETS: u32 = 16;

/// Both clocks now: the middle of the narrowest of several TSC brackets around one clock reading.
pub fn sample() -> ClockSample {
    (0..BRACKETS)
        .map(|_| {
            let before = tsc();
            let ns = monotonic_ns();
            let width = tsc().wrapping_sub(before);
            let tsc = before.wrapping_add(width / 2);
            (width, ClockSample { tsc, ns })
        })
        .min_by_key(|(width, _)| *width)
        .expect("there is at least one bracket")
        .1
}

/// The host's TSC, not before earlier instructions are done.
pub fn tsc() -> u64 {
    // SAFETY: LFENCE and RDTSC exist on every x86-64 processor and touch no memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC always exists")
}

/// A clock of this process in nanoseconds; `None` when the kernel refuses it (a thread's clock after its end).
pub fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live timespec for the kernel to fill in.
    let read = unsafe { libc::clock_gettime(clock, &mut time) };
    (read == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_do_not_run_backwards() {
        let begin = sample();
        let end = sample();
        assert!(end.ns >= begin.ns && end.tsc > begin.tsc);
    }
}
