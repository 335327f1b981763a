// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which slices vCPUs' threads have where the host's own scheduler stays, in words.

use std::{fmt, str::FromStr};

use unspin_policy::steering::{format_time, parse_time};

/// Allowed slices, ns: `__setparam_fair()`, kernel/sched/fair.c, Linux 7.2, makes others these.
const SLICES_NS: std::ops::RangeInclusive<u32> = 100_000..=100_000_000;

/// The slices of vCPUs' threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSlice {
    /// Each VM's is found by trial.
    Auto,
    /// All have this one, ns.
    Fixed(u32),
}

impl FromStr for HostSlice {
    type Err = String;

    /// `auto`, or a time from 100us to 100ms.
    fn from_str(text: &str) -> Result<HostSlice, String> {
        match text {
            "auto" => Ok(HostSlice::Auto),
            time => parse_time(text, time, SLICES_NS).map(HostSlice::Fixed),
        }
    }
}

impl fmt::Display for HostSlice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostSlice::Auto => out.write_str("auto"),
            HostSlice::Fixed(ns) => out.write_str(&format_time(*ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_times_the_kernel_knows_or_auto() {
        for (text, slice) in [
            ("auto", HostSlice::Auto),
            ("100us", HostSlice::Fixed(100_000)),
            ("100ms", HostSlice::Fixed(100_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(slice));
            assert_eq!(slice.to_string(), text);
        }
        for wrong in ["", "99us", "101ms", "1", "100", "Auto", "-1ms"] {
            assert!(wrong.parse::<HostSlice>().is_err(), "{wrong}");
        }
    }
}
