// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rates of clocks, and how far ahead a task may wait.

use super::{MS, SLICE_NS};
use unspin_policy::mechanics::{
    ClockRate, GroupWeight, NICE_0_WEIGHT, Weight, reweighted_vtime_ns,
};

const FARTHEST_NS: u64 = 1 << 40;
const PERIOD_NS: u64 = 64 * MS;

/// A rate measured at time 0 with the clock at `from_ns`, and again after some time with the clock at `to_ns`.
fn measured(from_ns: u64, to_ns: u64, elapsed_ns: u64) -> (ClockRate, bool) {
    let mut rate = ClockRate::default();
    let begin_ns = 1_000_000 * MS;
    assert!(
        !rate.measure(from_ns, begin_ns),
        "it says nothing the first time"
    );
    let says = rate.measure(to_ns, begin_ns + elapsed_ns);
    (rate, says)
}

#[test]
fn a_rate_is_measured_once_a_period() {
    let mut rate = measured(0, 0, PERIOD_NS).0;
    let begin_ns = 1_000_000 * MS + PERIOD_NS;
    let before = rate;
    assert!(!rate.measure(9, begin_ns + PERIOD_NS - 1));
    assert_eq!(rate, before);
    assert!(rate.measure(9, begin_ns + PERIOD_NS));
    assert_ne!(rate, before);
}

#[test]
fn nobody_waits_further_ahead_than_the_clock_comes_in_two_seconds() {
    // A twentieth of real time's rate.
    let (rate, says) = measured(0, PERIOD_NS / 20, PERIOD_NS);
    assert!(says);
    assert_eq!(rate.farthest_ahead_ns(SLICE_NS), 100 * MS);
    // Across a wrap-around.
    let begin = u64::MAX - MS;
    let (rate, _) = measured(begin, begin.wrapping_add(PERIOD_NS / 20), PERIOD_NS);
    assert_eq!(rate.farthest_ahead_ns(SLICE_NS), 100 * MS);
}

#[test]
fn nobody_of_nice_0_is_brought_forward() {
    for to_ns in [0, MS / 100] {
        let (rate, _) = measured(0, to_ns, PERIOD_NS);
        assert_eq!(rate.farthest_ahead_ns(SLICE_NS), 2 * SLICE_NS + 4 * MS);
    }
    // Nor for a clock that went backwards.
    let (rate, says) = measured(MS, 0, PERIOD_NS);
    assert!(says);
    assert_eq!(rate.farthest_ahead_ns(SLICE_NS), 2 * SLICE_NS + 4 * MS);
}

#[test]
fn a_clock_that_was_idle_bounds_nobody() {
    let (rate, says) = measured(0, MS, 4 * PERIOD_NS + 1);
    assert!(!says);
    assert_eq!(rate.farthest_ahead_ns(SLICE_NS), FARTHEST_NS);
}

#[test]
fn a_clock_that_one_alone_took_along_is_as_fast_as_any() {
    let (rate, says) = measured(0, 1 << 50, PERIOD_NS);
    assert!(says);
    assert_eq!(
        rate.farthest_ahead_ns(SLICE_NS),
        FARTHEST_NS * 2_000 / 64,
        "and no number runs over"
    );
}

#[test]
fn the_latest_virtual_time_is_by_the_queues_own_clock() {
    let (rate, _) = measured(0, PERIOD_NS / 20, PERIOD_NS);
    assert_eq!(rate.latest_own_ns(30 * MS, 0, SLICE_NS), 130 * MS);
    assert_eq!(rate.latest_own_ns(30 * MS, 10 * MS, SLICE_NS), 120 * MS);
    let below = (5 * MS).wrapping_neg();
    assert_eq!(rate.latest_own_ns(30 * MS, below, SLICE_NS), 135 * MS);
}

#[test]
fn who_waits_in_the_shared_queue_is_measured_by_the_further_and_the_faster() {
    let (slow, _) = measured(0, PERIOD_NS / 20, PERIOD_NS);
    let (fast, _) = measured(0, PERIOD_NS / 10, PERIOD_NS);
    let latest = |of: &ClockRate, front_ns, clock_ns, shared| {
        of.latest_shared_ns(front_ns, clock_ns, shared, SLICE_NS)
    };
    assert_eq!(latest(&slow, 30 * MS, 20 * MS, &slow), 130 * MS);
    assert_eq!(
        latest(&slow, 20 * MS, 30 * MS, &slow),
        130 * MS,
        "this pCPU is behind"
    );
    assert_eq!(latest(&slow, 30 * MS, 20 * MS, &fast), 230 * MS);
    assert_eq!(latest(&fast, 30 * MS, 20 * MS, &slow), 230 * MS);
}

/// A sibling of weight 10,000 in a cgroup goes away: what the other is ahead shrinks a hundred times, and nothing else moves.
#[test]
fn a_lead_is_scaled_to_a_weight_that_has_grown() {
    let beside = |others: i64| {
        let mut group = GroupWeight::new(NICE_0_WEIGHT);
        group.add(i64::from(NICE_0_WEIGHT) + others);
        Weight::flat(NICE_0_WEIGHT, [&group])
    };
    let (light, alone) = (beside(99 * i64::from(NICE_0_WEIGHT)), beside(0));
    let clock = u64::MAX - MS;
    let ahead = clock.wrapping_add(700 * MS);
    assert_eq!(
        reweighted_vtime_ns(ahead, clock, light, alone),
        clock.wrapping_add(7 * MS)
    );
    for (vtime, from, to) in [
        (ahead, alone, light),
        (ahead, alone, alone),
        // Behind the clock.
        (clock - MS, light, alone),
        // Grown by half.
        (ahead, beside(2048), beside(1024)),
    ] {
        assert_eq!(reweighted_vtime_ns(vtime, clock, from, to), vtime);
    }
}
