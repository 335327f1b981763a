// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times to acquire, as the drivers count them, and how evenly threads were served.

use crate::ffi::{DRIVER_ACQUIRE_BUCKETS, DriverOutcome};

/// Times in buckets of an eighth of a power of two, TSC cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    count: Box<[u64]>,
    longest_cycles: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies {
            count: vec![0; DRIVER_ACQUIRE_BUCKETS].into(),
            longest_cycles: 0,
        }
    }
}

impl Latencies {
    /// Adds what a thread saw.
    pub fn add(&mut self, outcome: &DriverOutcome) {
        for (sum, count) in self.count.iter_mut().zip(outcome.acquire_count) {
            *sum += count;
        }
        self.longest_cycles = self.longest_cycles.max(outcome.longest_cycles);
    }

    /// Adds other times.
    pub fn merge(&mut self, other: &Latencies) {
        for (sum, count) in self.count.iter_mut().zip(&other.count) {
            *sum += count;
        }
        self.longest_cycles = self.longest_cycles.max(other.longest_cycles);
    }

    /// How many times there are.
    pub fn total(&self) -> u64 {
        self.count.iter().sum()
    }

    /// The longest, exact.
    pub fn longest_cycles(&self) -> u64 {
        self.longest_cycles
    }

    /// The time that `per_mille` (1 to 1,000) of all do not exceed, as the middle of its bucket, which is 1/16 off at most,
    /// and never more than the longest; `None` without times.
    pub fn percentile_cycles(&self, per_mille: u32) -> Option<f64> {
        let total = self.total();
        let rank = (u128::from(total) * u128::from(per_mille)).div_ceil(1_000) as u64;
        let mut below = 0;
        for (bucket, count) in self.count.iter().enumerate() {
            below += count;
            if below >= rank.max(1) {
                return Some(middle(bucket).min(self.longest_cycles as f64));
            }
        }
        None
    }
}

/// The middle of a bucket of `driver_acquire_bucket()`.
fn middle(bucket: usize) -> f64 {
    if bucket < 8 {
        return bucket as f64;
    }
    let power = bucket / 8 + 2;
    let width = 2f64.powi(power as i32 - 3);
    (8.0 + (bucket % 8) as f64) * width + (width - 1.0) / 2.0
}

/// Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 when all have got the same, 1/n when one has got all. `None` when
/// nobody has got anything.
pub fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    (sum > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The value in the middle; the mean of both in the middle of an even number. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As driver.h has it.
    fn bucket(cycles: u64) -> usize {
        let power = 63 - (cycles | 1).leading_zeros() as usize;
        if cycles < 8 {
            cycles as usize
        } else {
            (power - 2) * 8 + (cycles >> (power - 3) & 7) as usize
        }
    }

    fn of(times: &[u64]) -> Latencies {
        let mut outcome = DriverOutcome::default();
        for &time in times {
            outcome.acquire_count[bucket(time)] += 1;
            outcome.longest_cycles = outcome.longest_cycles.max(time);
        }
        let mut latencies = Latencies::default();
        latencies.add(&outcome);
        latencies
    }

    #[test]
    fn percentiles_are_near_the_values_of_that_rank() {
        let times: Vec<u64> = (1..=1_000).map(|n| n * 1_000).collect();
        let latencies = of(&times);
        for (per_mille, exact) in [
            (1, 1e3),
            (500, 500e3),
            (950, 950e3),
            (990, 990e3),
            (1_000, 1e6),
        ] {
            let seen = latencies.percentile_cycles(per_mille).expect("times");
            assert!(
                (seen / exact - 1.0).abs() < 1.0 / 15.0,
                "{per_mille}: {seen}"
            );
        }
        assert_eq!(latencies.longest_cycles(), 1_000_000);
        assert_eq!(latencies.total(), 1_000);
        assert_eq!(Latencies::default().percentile_cycles(500), None);
    }

    #[test]
    fn a_single_time_is_every_percentile() {
        for time in [0, 1, 7, 8, 9, 100, u64::MAX] {
            let latencies = of(&[time]);
            for per_mille in [1, 500, 1_000] {
                let seen = latencies.percentile_cycles(per_mille).expect("a time");
                assert!(
                    seen <= time as f64 && seen >= time as f64 * 0.93,
                    "{time}: {seen}"
                );
            }
        }
    }

    #[test]
    fn merged_times_are_those_of_both() {
        let mut both = of(&[10, 20, 30]);
        both.merge(&of(&[1_000]));
        assert_eq!((both.total(), both.longest_cycles()), (4, 1_000));
    }

    #[test]
    fn jain_is_one_for_equals_and_one_over_n_for_one() {
        assert_eq!(jain(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(jain(&[0, 0, 9, 0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * 14)
        assert!(jain(&[1, 2, 3]).is_some_and(|index| (index - 36.0 / 42.0).abs() < 1e-12));
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn the_median_does_not_mind_outliers() {
        assert_eq!(median(&[3.0, 1e9, 1.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 1e9]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
