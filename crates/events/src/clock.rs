// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guest and host tell the time in TSC cycles and in nanoseconds: a straight line through two samples joins them.

use serde::{Deserialize, Serialize};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// Time stamp counter, cycles.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub ns: u64,
}

/// Converts TSC cycles to nanoseconds of `CLOCK_MONOTONIC`, in integers: the same result on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TscClock {
    first: ClockSample,
    last: ClockSample,
}

/// Two samples that define no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the second clock sample must be later than the first on both clocks: {first:?}, {last:?}")]
pub struct ClockError {
    first: ClockSample,
    last: ClockSample,
}

impl TscClock {
    /// A clock through both samples; the further apart, the better.
    ///
    /// # Errors
    /// When `last` is not later than `first` on both clocks.
    pub fn new(first: ClockSample, last: ClockSample) -> Result<TscClock, ClockError> {
        if last.tsc > first.tsc && last.ns > first.ns {
            Ok(TscClock { first, last })
        } else {
            Err(ClockError { first, last })
        }
    }

    /// Nanoseconds at that TSC value, rounded down. Outside of 0 to `u64::MAX` it stays at that bound: a guest may claim
    /// any value.
    pub fn ns(&self, tsc: u64) -> u64 {
        let (ns, per) = self.slope();
        if tsc >= self.first.tsc {
            let later = u128::from(tsc - self.first.tsc) * ns / per;
            u64::try_from(u128::from(self.first.ns) + later.min(u128::from(u64::MAX)))
                .unwrap_or(u64::MAX)
        } else {
            let earlier = (u128::from(self.first.tsc - tsc) * ns).div_ceil(per);
            u64::try_from(earlier).map_or(0, |earlier| self.first.ns.saturating_sub(earlier))
        }
    }

    /// Length of so many cycles in nanoseconds, rounded down; at most `u64::MAX`.
    pub fn duration_ns(&self, cycles: u64) -> u64 {
        let (ns, per) = self.slope();
        u64::try_from(u128::from(cycles) * ns / per).unwrap_or(u64::MAX)
    }

    /// The sample that it begins with.
    pub fn first(&self) -> ClockSample {
        self.first
    }

    /// The later sample.
    pub fn last(&self) -> ClockSample {
        self.last
    }

    /// TSC cycles per second, to the nearest.
    pub fn tsc_hz(&self) -> u64 {
        let (ns, cycles) = self.slope();
        u64::try_from((cycles * 1_000_000_000 + ns / 2) / ns).unwrap_or(u64::MAX)
    }

    /// So many nanoseconds take so many cycles. Both are below 2^64, so their product with a u64 fits in a u128.
    fn slope(&self) -> (u128, u128) {
        let ns = self.last.ns - self.first.ns;
        let cycles = self.last.tsc - self.first.tsc;
        (ns.into(), cycles.into())
    }
}
