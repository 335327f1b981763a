// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval between ordinary waits and preemption waits (ruling 4): a valley between two peaks, or nothing.
//!
//! Friebel reads it off a picture. The rule here is ours: in the histogram by count, a run of buckets that hold at most
//! half of the lower of two peaks around them, by more than chance (three standard deviations of a count).

use crate::waits::histogram::{WAIT_BUCKETS, WaitHistogram};

/// A valley holds at most this share of the lower peak.
const DEPTH: f64 = 0.5;
/// By so many standard deviations of the peak's count.
const DEVIATIONS: f64 = 3.0;

/// The buckets between ordinary and preemption waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Valley {
    /// Bucket with most of the ordinary waits.
    pub ordinary_peak: usize,
    /// First bucket of the valley.
    pub first: usize,
    /// Last bucket of the valley.
    pub last: usize,
    /// Its lowest bucket: waits from here on are preemption waits.
    pub split: usize,
    /// Bucket with most of the preemption waits.
    pub preemption_peak: usize,
}

/// The valley that keeps most of the waits below and most of the time above; `None`: no bucket is a valley.
pub fn valley(histogram: &WaitHistogram) -> Option<Valley> {
    let (first, last) = histogram.span()?;
    let (waits, time_ns) = (histogram.waits() as f64, histogram.total_ns());
    let mut best: Option<(f64, Valley)> = None;
    let mut below = 0.0;
    let mut above_ns = time_ns;
    for split in first..=last {
        if let Some(valley) = valley_at(histogram, split) {
            let score = below / waits * (above_ns / time_ns);
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, valley));
            }
        }
        below += histogram.count(split) as f64;
        above_ns -= histogram.time_ns(split);
    }
    best.map(|(_, valley)| valley)
}

/// Whether `split` is the lowest bucket of a valley.
fn valley_at(histogram: &WaitHistogram, split: usize) -> Option<Valley> {
    let count = |bucket: usize| histogram.count(bucket) as f64;
    // The first of equal ones, on both sides: short waits are the ordinary ones.
    let peak = |buckets: std::ops::Range<usize>| {
        buckets.reduce(|best, bucket| {
            if count(bucket) > count(best) {
                bucket
            } else {
                best
            }
        })
    };
    let ordinary_peak = peak(0..split)?;
    let preemption_peak = peak(split + 1..WAIT_BUCKETS)?;
    let lower = count(ordinary_peak).min(count(preemption_peak));
    let limit = (lower * DEPTH).min(lower - DEVIATIONS * lower.sqrt());
    let is_low = |bucket: usize| count(bucket) <= limit;
    if limit < 0.0 || lower == 0.0 || !is_low(split) {
        return None;
    }
    let first = (ordinary_peak + 1..=split)
        .rev()
        .take_while(|&bucket| is_low(bucket))
        .last()?;
    let last = (split..preemption_peak)
        .take_while(|&bucket| is_low(bucket))
        .last()?;
    // Only the valley's lowest bucket speaks for it; of equal ones the first.
    let lowest =
        (first..=last).find(|&bucket| (first..=last).all(|other| count(bucket) <= count(other)))?;
    (lowest == split).then_some(Valley {
        ordinary_peak,
        first,
        last,
        split,
        preemption_peak,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(usize, u64)]) -> WaitHistogram {
        let mut count = [0; WAIT_BUCKETS];
        let mut sum = [0; WAIT_BUCKETS];
        for &(bucket, waits) in counts {
            count[bucket] = waits;
            sum[bucket] = waits * (3 << bucket) / 2;
        }
        WaitHistogram::new(count, sum, 1.0)
    }

    #[test]
    fn two_humps_have_a_valley() {
        let waits = [
            (8, 500),
            (9, 9_000),
            (10, 4_000),
            (11, 600),
            (12, 3),
            (21, 40),
            (22, 70),
            (23, 10),
        ];
        let found = valley(&histogram(&waits)).expect("a valley");
        let expected = Valley {
            ordinary_peak: 9,
            first: 12,
            last: 20,
            split: 13,
            preemption_peak: 22,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn one_hump_has_none_however_long_its_tail() {
        let tail: Vec<(usize, u64)> = (0..20)
            .map(|place| (9 + place, 1_000_000 >> place))
            .collect();
        assert_eq!(valley(&histogram(&tail)), None);
        assert_eq!(valley(&histogram(&[(9, 1_000)])), None);
        assert_eq!(
            valley(&histogram(&[(9, 1_000), (10, 1_000), (11, 1_000)])),
            None
        );
        assert_eq!(valley(&WaitHistogram::default()), None);
    }

    #[test]
    fn chance_makes_no_valley() {
        // A few long waits may be anything; so may a small dip.
        assert_eq!(valley(&histogram(&[(9, 1_000), (20, 5)])), None);
        assert_eq!(valley(&histogram(&[(9, 100), (10, 80), (11, 90)])), None);
        assert!(valley(&histogram(&[(9, 1_000), (20, 10)])).is_some());
    }

    #[test]
    fn of_several_valleys_the_one_that_parts_waits_from_time() {
        let waits = [(4, 200), (9, 9_000), (10, 2_000), (20, 300), (25, 20)];
        let found = valley(&histogram(&waits)).expect("a valley");
        assert_eq!((found.ordinary_peak, found.preemption_peak), (9, 20));
    }
}
