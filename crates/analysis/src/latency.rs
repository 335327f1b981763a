// SPDX-License-Identifier: MIT OR Apache-2.0
//! Percentiles of times in little memory.

use std::collections::BTreeMap;

/// Buckets of a power of two, as a power of two: a percentile is at most 1/16 too large.
const SPLIT_BITS: u32 = 4;

/// A histogram of times, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    buckets: BTreeMap<u32, u64>,
    count: u64,
    largest_ns: u64,
}

impl Latency {
    /// Adds a time.
    pub fn add(&mut self, ns: u64) {
        *self.buckets.entry(bucket(ns)).or_default() += 1;
        self.count += 1;
        self.largest_ns = self.largest_ns.max(ns);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest; `None` without any.
    pub fn largest_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.largest_ns)
    }

    /// A time that `percent` (0 to 100) of them do not exceed, at most 1/16 above the least such; `None` without any.
    pub fn percentile_ns(&self, percent: u32) -> Option<u64> {
        let wanted = (u128::from(self.count) * u128::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut seen = 0;
        self.buckets.iter().find_map(|(&bucket, &count)| {
            seen += u128::from(count);
            (seen >= wanted).then(|| upper_bound(bucket).min(self.largest_ns))
        })
    }
}

/// Times below 2^SPLIT_BITS have a bucket each; above, each power of two has 2^SPLIT_BITS.
fn bucket(ns: u64) -> u32 {
    let bits = 64 - ns.leading_zeros();
    match bits.checked_sub(SPLIT_BITS + 1) {
        None => ns as u32,
        Some(shift) => (shift << SPLIT_BITS) + (ns >> shift) as u32,
    }
}

/// The largest time of a bucket.
fn upper_bound(bucket: u32) -> u64 {
    match (bucket >> SPLIT_BITS).checked_sub(1) {
        None => bucket.into(),
        Some(shift) => {
            let top = u64::from(bucket) - (u64::from(shift) << SPLIT_BITS);
            (top << shift) | ((1 << shift) - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Latency::default().percentile_ns(50), None);
        assert_eq!(Latency::default().largest_ns(), None);
    }

    proptest! {
        #[test]
        fn buckets_are_in_order_and_narrow(ns in any::<u64>()) {
            let upper = upper_bound(bucket(ns));
            prop_assert!(upper >= ns);
            prop_assert!(upper - ns <= ns / 16);
            prop_assert_eq!(bucket(upper), bucket(ns));
            prop_assert!(upper == u64::MAX || bucket(upper + 1) == bucket(ns) + 1);
        }

        #[test]
        fn percentiles_are_close(mut times in prop::collection::vec(0u64..1 << 40, 1..50), percent in 0u32..=100) {
            let mut latency = Latency::default();
            for &ns in &times {
                latency.add(ns);
            }
            times.sort();
            let rank = (times.len() * percent as usize).div_ceil(100).max(1);
            let exact = times[rank - 1];
            let found = latency.percentile_ns(percent).expect("some");
            prop_assert!(found >= exact && found - exact <= exact / 16);
        }
    }
}
