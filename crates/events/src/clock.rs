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
        let cycles = i128::from(tsc) - i128::from(self.first.tsc);
        let ns = i128::from(self.first.ns) + self.scale(cycles);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    /// Length of so many cycles in nanoseconds, rounded down.
    pub fn duration_ns(&self, cycles: u64) -> u64 {
        u64::try_from(self.scale(i128::from(cycles))).unwrap_or(u64::MAX)
    }

    /// Both factors are below 2^64 in magnitude, so their product can exceed 127 bits: then the division comes first,
    /// which only claims beyond 2^63 cycles reach.
    fn scale(&self, cycles: i128) -> i128 {
        let ns = i128::from(self.last.ns - self.first.ns);
        let per = i128::from(self.last.tsc - self.first.tsc);
        match cycles.checked_mul(ns) {
            Some(product) => product.div_euclid(per),
            None => (cycles / per).saturating_mul(ns),
        }
    }
}
