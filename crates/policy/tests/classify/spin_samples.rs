// SPDX-License-Identifier: MIT OR Apache-2.0
//! policy/classify/spin_samples.h.

use unspin_policy::SpinSamples;

const SHORT_NS: u64 = 20_000;
const LONG_NS: u64 = 160_000;

fn begun(waited: bool) -> SpinSamples {
    let mut samples = SpinSamples::default();
    samples.begin(waited);
    samples
}

#[test]
fn nobody_is_sampled_without_a_reason() {
    assert_eq!(SpinSamples::default().interval_ns(), None);
    assert_eq!(begun(false).interval_ns(), Some(SHORT_NS));
}

/// A wait that ends between two samples is none of the host's business: it takes two in a row.
#[test]
fn two_samples_in_a_row_that_find_it_waiting_are_a_spinner() {
    let mut samples = begun(false);
    assert!(!samples.sampled(true));
    assert_eq!(samples.interval_ns(), Some(SHORT_NS));
    assert!(samples.sampled(true));

    let mut samples = begun(false);
    assert!(!samples.sampled(true));
    assert!(!samples.sampled(false));
    assert!(!samples.sampled(true), "not in a row");
    assert!(samples.sampled(true));
}

/// What was seen waiting before counts as the first: a pause-loop exit, or a waiter that has its CPU again.
#[test]
fn one_that_was_waiting_needs_one_more() {
    assert!(begun(true).sampled(true));
    assert!(!begun(true).sampled(false));
}

/// While samples have no result they become rarer, but no rarer than every 160 us.
#[test]
fn a_spinner_for_whom_nobody_can_run_is_sampled_less_often() {
    let mut samples = begun(true);
    let mut intervals = Vec::new();
    for _ in 0..6 {
        assert!(samples.sampled(true));
        intervals.extend(samples.interval_ns());
    }
    let expected = [2, 4, 8, 8, 8, 8].map(|times| times * SHORT_NS);
    assert_eq!(intervals, expected);
}

/// A vCPU that computes is no longer sampled after four samples, 300 us.
#[test]
fn samples_that_find_nothing_end() {
    let mut samples = begun(false);
    let mut sum_ns = 0;
    let mut taken = 0;
    while let Some(ns) = samples.interval_ns() {
        sum_ns += ns;
        taken += 1;
        assert!(!samples.sampled(false));
    }
    assert_eq!((taken, sum_ns), (4, 300_000));
}

/// Whatever is found: samples are 20 to 160 us apart, and a sample that finds it elsewhere is never a spinner.
#[test]
fn intervals_stay_within_their_bounds() {
    for seed in 0..2_000_u32 {
        let mut samples = begun(seed % 2 == 0);
        for place in 0..20 {
            let Some(ns) = samples.interval_ns() else {
                break;
            };
            assert!((SHORT_NS..=LONG_NS).contains(&ns), "seed {seed}: {ns}");
            let waits = seed.wrapping_mul(2_654_435_761).rotate_left(place) & 1 == 1;
            assert!(!samples.sampled(waits) || waits, "seed {seed}");
        }
    }
}
