// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests' clock (TSC) beside the host's (CLOCK_MONOTONIC).
use std::arch::x86_64::{_mm_lfence, _rdtsc};

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSample {
    /// Host TSC; with a TSC offset of 0 also the guests'.
    pub tsc: u64,
    /// CLOCK_MONOTONIC, as in the kernel's trace and BPF's `bpf_ktime_get_ns`.
    pub monotonic_ns: u64,
}

/// Brackets that [`ClockSample::now`] tries: the narrowest wins, so one undisturbed try is enough.
const BRACKETS: u32 = 16;

impl ClockSample {
    /// Both clocks now: the middle of the narrowest of several TSC brackets around one clock reading.
    pub fn now() -> ClockSample {
        (0..BRACKETS)
            .map(|_| {
                let before = tsc();
                let monotonic_ns = monotonic_ns();
                let width = tsc().wrapping_sub(before);
                let tsc = before.wrapping_add(width / 2);
                (width, ClockSample { tsc, monotonic_ns })
            })
            .min_by_key(|(width, _)| *width)
            .expect("there is at least one bracket")
            .1
    }
}

/// Converts TSC values to CLOCK_MONOTONIC by two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The earlier sample.
    pub begin: ClockSample,
    /// The later one.
    pub end: ClockSample,
}

impl Clock {
    /// CLOCK_MONOTONIC at that TSC value, in integers, exact at both samples; values outside the two samples are
    /// extrapolated and saturate. Samples of the same TSC value give the first one's time.
    pub fn monotonic_ns(&self, tsc: u64) -> u64 {
        let ticks = i128::from(self.end.tsc) - i128::from(self.begin.tsc);
        let ns = i128::from(self.end.monotonic_ns) - i128::from(self.begin.monotonic_ns);
        let since = i128::from(tsc) - i128::from(self.begin.tsc);
        if ticks <= 0 {
            return self.begin.monotonic_ns;
        }
        let at = i128::from(self.begin.monotonic_ns) + (since * ns).div_euclid(ticks);
        at.clamp(0, i128::from(u64::MAX)) as u64
    }

    /// TSC ticks per second, to the nearest; 0 when the samples are one.
    pub fn tsc_hz(&self) -> u64 {
        let ns = u128::from(
            self.end
                .monotonic_ns
                .saturating_sub(self.begin.monotonic_ns),
        );
        let ticks = u128::from(self.end.tsc.saturating_sub(self.begin.tsc));
        if ns == 0 {
            return 0;
        }
        u64::try_from((ticks * 1_000_000_000 + ns / 2) / ns).unwrap_or(u64::MAX)
    }
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
    fn conversion_is_exact_at_the_samples_and_linear_between_and_beyond() {
        let clock = Clock {
            begin: ClockSample {
                tsc: 1 << 62,
                monotonic_ns: 5_000_000_000,
            },
            end: ClockSample {
                tsc: (1 << 62) + 3_000_000_000,
                monotonic_ns: 6_000_000_000,
            },
        };
        assert_eq!(clock.monotonic_ns(1 << 62), 5_000_000_000);
        assert_eq!(clock.monotonic_ns((1 << 62) + 3_000_000_000), 6_000_000_000);
        assert_eq!(clock.monotonic_ns((1 << 62) + 3), 5_000_000_001);
        assert_eq!(clock.monotonic_ns((1 << 62) - 3), 4_999_999_999);
        assert_eq!(clock.monotonic_ns(0), 0);
        assert_eq!(clock.tsc_hz(), 3_000_000_000);
    }

    #[test]
    fn one_sample_twice_divides_by_nothing() {
        let sample = ClockSample {
            tsc: 9,
            monotonic_ns: 7,
        };
        let clock = Clock {
            begin: sample,
            end: sample,
        };
        assert_eq!((clock.monotonic_ns(1234), clock.tsc_hz()), (7, 0));
    }

    #[test]
    fn samples_do_not_run_backwards() {
        let begin = ClockSample::now();
        let end = ClockSample::now();
        assert!(end.monotonic_ns >= begin.monotonic_ns && end.tsc > begin.tsc);
    }
}
