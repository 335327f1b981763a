// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each choice of the threshold costs: from how long a wait on a guest calls the host.
//!
//! Too short a threshold and ordinary waits exit for nothing; too long a one and preemption waits spin until
//! they do. Waits stand in buckets of powers of two, so thresholds at the buckets' limits are exact, and others are not
//! offered.

pub(crate) mod histogram;
pub(crate) mod valley;
pub(crate) mod wall_gain;
use crate::threshold::{
    histogram::WaitHistogram,
    valley::{Valley, valley},
};

/// A threshold and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The threshold, nanoseconds.
    pub threshold_ns: f64,
    /// Whether it lies in the interval between ordinary and preemption waits; `None`: there is no such interval.
    pub in_valley: Option<bool>,
    /// Share of the ordinary waits that exit needlessly; `None` where nobody can tell which are ordinary.
    pub needless_share: Option<f64>,
    /// Spinning of the preemption waits before they exit, nanoseconds; of all waits where nobody can tell which they are.
    pub spin_ns: f64,
    /// The same as a share of the guest's time; `None` where that is not known.
    pub spin_of_guest: Option<f64>,
    /// How many waits exit, of either kind.
    pub exits: u64,
}

/// The interval and every choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// Between ordinary and preemption waits; `None`: nothing parts them, and none is made up.
    pub valley: Option<Valley>,
    /// By threshold, one for each bucket's lower limit from the shortest wait to beyond the longest.
    pub choices: Vec<Choice>,
}

/// Every choice for these waits. `guest_ns`: the guest's CPU time.
pub fn thresholds(histogram: &WaitHistogram, guest_ns: Option<f64>) -> Thresholds {
    let valley = valley(histogram);
    let Some((first, last)) = histogram.span() else {
        return Thresholds {
            valley,
            choices: Vec::new(),
        };
    };
    let choices = (first.max(1)..=last + 1)
        .filter(|&bucket| bucket < crate::threshold::histogram::WAIT_BUCKETS)
        .map(|bucket| choice(histogram, valley, bucket, guest_ns))
        .collect();
    Thresholds { valley, choices }
}

fn choice(
    histogram: &WaitHistogram,
    valley: Option<Valley>,
    bucket: usize,
    guest_ns: Option<f64>,
) -> Choice {
    let threshold_ns = histogram.floor_ns(bucket);
    let (first, last) = histogram.span().unwrap_or_default();
    let waits = |from: usize, to: usize| -> u64 { (from..to).map(|b| histogram.count(b)).sum() };
    let split = valley.map(|valley| valley.split);
    let needless_share = split.map(|split| {
        let ordinary = waits(first, split);
        waits(bucket.min(split), split) as f64 / ordinary as f64
    });
    let spin_ns = (split.unwrap_or(first)..=last)
        .map(|b| match b < bucket {
            true => histogram.time_ns(b),
            false => histogram.count(b) as f64 * threshold_ns,
        })
        .sum();
    Choice {
        threshold_ns,
        in_valley: valley.map(|valley| (valley.first..=valley.last + 1).contains(&bucket)),
        needless_share,
        spin_ns,
        spin_of_guest: guest_ns.filter(|&ns| ns > 0.0).map(|ns| spin_ns / ns),
        exits: waits(bucket, last + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 waits of 1.5 us, 100 of 3 ms.
    fn bimodal() -> WaitHistogram {
        let mut histogram = WaitHistogram::default();
        (0..1_000).for_each(|_| histogram.add(1_500));
        (0..100).for_each(|_| histogram.add(3_000_000));
        histogram
    }

    #[test]
    fn each_choice_weighs_needless_exits_against_burnt_time() {
        let found = thresholds(&bimodal(), Some(1e9));
        assert_eq!(found.choices.len(), 13, "1,024 ns to 4,194,304 ns");
        let at = |threshold_ns: f64| {
            let mut choices = found.choices.iter();
            choices
                .find(|choice| choice.threshold_ns == threshold_ns)
                .expect("a power of two")
        };
        let shortest = at(1024.0);
        assert_eq!(
            (shortest.needless_share, shortest.exits),
            (Some(1.0), 1_100)
        );
        assert_eq!(shortest.spin_ns, 102_400.0);
        let good = at(2048.0);
        assert_eq!((good.needless_share, good.exits), (Some(0.0), 100));
        assert_eq!((good.in_valley, good.spin_ns), (Some(true), 204_800.0));
        assert!((good.spin_of_guest.expect("known") - 0.000_204_8).abs() < 1e-12);
        let late = at(2_097_152.0);
        assert_eq!((late.in_valley, late.spin_ns), (Some(true), 209_715_200.0));
        let never = at(4_194_304.0);
        assert_eq!((never.exits, never.spin_ns), (0, 300_000_000.0));
        assert_eq!(never.in_valley, Some(false));
    }

    #[test]
    fn without_a_valley_nobody_is_called_ordinary() {
        let mut histogram = WaitHistogram::default();
        (0..1_000u64).for_each(|wait| histogram.add(wait * 7));
        let found = thresholds(&histogram, None);
        assert_eq!(found.valley, None);
        assert!(!found.choices.is_empty());
        for choice in &found.choices {
            assert_eq!((choice.needless_share, choice.in_valley), (None, None));
            assert_eq!(choice.spin_of_guest, None);
        }
        assert!(
            thresholds(&WaitHistogram::default(), None)
                .choices
                .is_empty()
        );
    }
}
