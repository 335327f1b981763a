// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests' clock (TSC) beside the host's (CLOCK_MONOTONIC).
//!
//! And how fast this machine does the work loop, so that a scenario's nanoseconds become loops.

use std::{
    arch::x86_64::{_mm_lfence, _rdtsc},
    time::Duration,
};

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

/// Rate of the TSC, within 0.1 %: takes 20 ms.
pub fn tsc_hz() -> u64 {
    let begin = sample();
    std::thread::sleep(Duration::from_millis(20));
    let end = sample();
    let (cycles, ns) = (end.tsc.wrapping_sub(begin.tsc), end.ns - begin.ns);
    (u128::from(cycles) * 1_000_000_000 / u128::from(ns.max(1))) as u64
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

unsafe extern "C" {
    /// locks/parts/work.h's loop, `loops` spins of it; native/work.c.
    fn unspin_vmm_work(loops: u32);
}

/// Spins of the work loop per unit of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRate {
    /// Loops per millisecond; above 0.
    pub loops_per_ms: u64,
}

/// Tries, of which the fastest counts: whatever else runs only makes a try slower.
const TRIES: u32 = 9;
/// Of one try: long enough that reading the clock (tens of nanoseconds, emulated a microsecond) is below 0.1 %.
const TRY_NS: u64 = 2_000_000;

impl WorkRate {
    /// Measures it on the CPU that the caller is on; takes some 25 ms.
    pub fn measure() -> WorkRate {
        let loops = loops_for(TRY_NS);
        let fastest_ns = (0..TRIES).map(|_| time_ns(loops)).min().unwrap_or(1);
        WorkRate::from_measurement(loops, fastest_ns)
    }

    fn from_measurement(loops: u32, ns: u64) -> WorkRate {
        let per_ms = u128::from(loops) * 1_000_000 / u128::from(ns.max(1));
        WorkRate {
            loops_per_ms: u64::try_from(per_ms).unwrap_or(u64::MAX).max(1),
        }
    }

    /// Loops that take that long, to the nearest.
    pub fn loops(self, ns: u64) -> u64 {
        let loops = (u128::from(ns) * u128::from(self.loops_per_ms) + 500_000) / 1_000_000;
        u64::try_from(loops).unwrap_or(u64::MAX)
    }
}

/// A number of loops that takes at least that long, by doubling; 2^31 at most, a second on any machine.
fn loops_for(ns: u64) -> u32 {
    (12..31)
        .map(|bits| 1 << bits)
        .find(|loops| time_ns(*loops) >= ns)
        .unwrap_or(1 << 31)
}

fn time_ns(loops: u32) -> u64 {
    let begin = monotonic_ns();
    // SAFETY: a loop over a register; it touches no memory.
    unsafe { unspin_vmm_work(loops) };
    monotonic_ns() - begin
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

    #[test]
    fn nanoseconds_become_loops_to_the_nearest() {
        let rate = WorkRate::from_measurement(3_000, 1_000);
        assert_eq!(rate.loops_per_ms, 3_000_000);
        assert_eq!(
            (rate.loops(0), rate.loops(1), rate.loops(1_000)),
            (0, 3, 3_000)
        );
        let slow = WorkRate { loops_per_ms: 400 };
        assert_eq!((slow.loops(1_249), slow.loops(1_250)), (0, 1));
        assert_eq!(slow.loops(u64::MAX), 7_378_697_629_483_821);
        assert_eq!(WorkRate::from_measurement(0, 0).loops_per_ms, 1);
    }

    #[test]
    fn more_loops_take_longer() {
        let fastest = |loops| (0..5).map(|_| time_ns(loops)).min().expect("five tries");
        let (few, many) = (fastest(1 << 16), fastest(1 << 22));
        assert!(many > 16 * few, "64 times the work: {few} ns, {many} ns");
    }
}
