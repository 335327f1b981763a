// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quotas of cgroups: refills, bursts, debts, and what tasks get in the long run.

use super::{MS, SLICE_NS};
use proptest::prelude::*;
use unspin_policy::mechanics::{
    Bandwidth, LEAST_THROTTLED_SLICE_NS, LONGEST_THROTTLED_NS, slice_in_quota_ns, throttle_ends_ns,
    throttled_too_long,
};

/// `quota` of each `period`, ms, from time 0.
fn bandwidth(quota: u64, period: u64) -> Bandwidth {
    let mut bandwidth = Bandwidth::default();
    bandwidth.set(quota * 1000, period * 1000, 0, 0);
    bandwidth
}

#[test]
fn a_period_refills_the_quota_and_saves_nothing() {
    let mut half = bandwidth(50, 100);
    assert_eq!(half.left_ns(0), 50 * MS as i64);
    half.charge(20 * MS);
    assert_eq!(half.left_ns(100 * MS - 1), 30 * MS as i64);
    assert_eq!(half.left_ns(100 * MS), 50 * MS as i64);
    // Nine idle periods later, too.
    assert_eq!(half.left_ns(1000 * MS), 50 * MS as i64);
}

/// sched-bwc.rst: "burst" lets a cgroup use in one period what it left in earlier ones.
#[test]
fn a_burst_is_what_was_left_over() {
    let mut bandwidth = Bandwidth::default();
    bandwidth.set(50_000, 100_000, 30_000, 0);
    bandwidth.charge(40 * MS);
    assert_eq!(bandwidth.left_ns(100 * MS), 60 * MS as i64);
    assert_eq!(bandwidth.left_ns(200 * MS), 80 * MS as i64);
    assert_eq!(bandwidth.left_ns(900 * MS), 80 * MS as i64);
}

#[test]
fn a_debt_is_paid_by_as_many_periods_as_it_takes() {
    let mut tenth = bandwidth(10, 100);
    tenth.charge(10 * MS);
    assert_eq!(tenth.left_ns(MS), 0);
    assert_eq!(tenth.throttled_until_ns(), 100 * MS);
    tenth.charge(10 * MS - 1);
    assert_eq!(tenth.throttled_until_ns(), 100 * MS);
    tenth.charge(1);
    // One refill leaves nothing: the next one does.
    assert_eq!(tenth.throttled_until_ns(), 200 * MS);
    assert_eq!(tenth.left_ns(100 * MS), 0);
    assert_eq!(tenth.left_ns(200 * MS), 10 * MS as i64);
}

#[test]
fn writing_a_quota_again_gives_no_time() {
    let mut tenth = bandwidth(10, 100);
    tenth.charge(25 * MS);
    for now in 1..90 {
        tenth.set(10_000, 100_000, 0, now * MS);
        assert_eq!(tenth.left_ns(now * MS), -15 * MS as i64);
    }
    // A shorter period begins now; a smaller quota takes what is left down.
    tenth.set(10_000, 2_000, 0, 90 * MS);
    assert_eq!(tenth.left_ns(92 * MS), -5 * MS as i64);
    let mut half = bandwidth(50, 100);
    half.set(10_000, 100_000, 0, MS);
    assert_eq!(half.left_ns(MS), 10 * MS as i64);
}

#[test]
fn quotas_without_a_bound_neither_limit_nor_overflow() {
    let mut most = Bandwidth::default();
    most.set(u64::MAX, u64::MAX, u64::MAX, 0);
    assert!(most.left_ns(u64::MAX >> 1) > 0);
    let mut odd = Bandwidth::default();
    odd.set(1, 1, 0, 0);
    odd.charge(1 << 60);
    assert!(odd.left_ns(1 << 50) < 0);
    assert!(odd.throttled_until_ns() > 1 << 50);
}

#[test]
fn slices_are_cut_to_what_is_left() {
    assert_eq!(slice_in_quota_ns(SLICE_NS, i64::MAX), SLICE_NS);
    assert_eq!(
        slice_in_quota_ns(SLICE_NS, SLICE_NS as i64 - 1),
        SLICE_NS - 1
    );
    for left in [LEAST_THROTTLED_SLICE_NS as i64, 1, 0, -5, i64::MIN] {
        assert_eq!(slice_in_quota_ns(SLICE_NS, left), LEAST_THROTTLED_SLICE_NS);
    }
    assert_eq!(slice_in_quota_ns(50_000, -1), 50_000);
}

#[test]
fn no_task_is_throttled_for_longer_than_the_watchdog_allows() {
    let since = 7 * MS;
    assert!(!throttled_too_long(0, u64::MAX >> 1));
    assert!(!throttled_too_long(since, since + LONGEST_THROTTLED_NS - 1));
    assert!(throttled_too_long(since, since + LONGEST_THROTTLED_NS));
    assert_eq!(throttle_ends_ns(since + MS, since), since + MS);
    assert_eq!(
        throttle_ends_ns(1 << 60, since),
        since + LONGEST_THROTTLED_NS
    );
}

proptest! {
    /// CPUs that take slices whenever the quota lasts, and pauses: the cgroup runs for its quota in the long run, and no period has
    /// more than a slice of each CPU beyond it.
    #[test]
    fn the_quota_is_kept(
        quota in 1u64..200, period in 1u64..200, burst in 0u64..50, cpus in 1u64..9,
        pauses in prop::collection::vec(0u64..20, 200),
    ) {
        let mut bandwidth = Bandwidth::default();
        bandwidth.set(quota * 1000, period * 1000, burst * 1000, 0);
        let (mut now, mut ran) = (0, 0);
        for pause in pauses {
            now += pause * MS;
            let left = bandwidth.left_ns(now);
            if left <= 0 {
                let until = bandwidth.throttled_until_ns();
                prop_assert!(until > now);
                prop_assert!(bandwidth.clone().left_ns(until) > 0);
                prop_assert!(bandwidth.clone().left_ns(until - 1) <= 0);
                now = until;
            }
            let slice = slice_in_quota_ns(SLICE_NS, bandwidth.left_ns(now));
            prop_assert!(slice > 0 && slice <= SLICE_NS);
            for _ in 0..cpus {
                bandwidth.charge(slice);
            }
            now += slice;
            ran += slice * cpus;
        }
        let allowed = (now / (period * MS) + 1) * quota * MS + burst * MS + cpus * SLICE_NS;
        prop_assert!(ran <= allowed, "{ran} of {allowed}");
    }
}
