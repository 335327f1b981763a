// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a task is placed that wakes up, and which task it preempts.

use super::MS;
use proptest::prelude::*;
use unspin_policy::mechanics::{
    NICE_0_WEIGHT, Weight, before, expected_burst_ns, hands_over, is_handed_over, is_protected,
    lag_ns, may_skip_queues, mean_burst_ns, placed_vtime_ns, wakeup_preempts, woken_vtime_ns,
};

const SLICE_NS: u64 = 3 * MS;
const CLOCK_NS: u64 = 100 * MS;

fn weight(own: u32) -> Weight {
    Weight::flat(own, [])
}

fn woken(vtime_ns: u64, lag_ns: u64, burst_ns: u64) -> u64 {
    woken_vtime_ns(
        vtime_ns,
        weight(NICE_0_WEIGHT),
        lag_ns,
        burst_ns,
        CLOCK_NS,
        SLICE_NS,
    )
}

#[test]
fn a_long_run_counts_at_once_and_short_ones_bit_by_bit() {
    assert_eq!(expected_burst_ns(0, MS, SLICE_NS), MS);
    assert_eq!(expected_burst_ns(MS, 2 * MS, SLICE_NS), 2 * MS);
    assert_eq!(expected_burst_ns(MS, 9 * MS, SLICE_NS), SLICE_NS);
    assert_eq!(expected_burst_ns(1000, 200, SLICE_NS), 800);
    // The expectation converges: a CPU-bound task that sleeps after each 0.1 ms from now on becomes one with short
    // runs.
    let mut burst_ns = SLICE_NS;
    for _ in 0..100 {
        burst_ns = expected_burst_ns(burst_ns, MS / 10, SLICE_NS);
    }
    assert_eq!(burst_ns, MS / 10);
    assert_eq!(expected_burst_ns(1, 0, SLICE_NS), 0);
}

#[test]
fn the_mean_of_runs_follows_long_ones_as_slowly_as_short_ones() {
    assert_eq!(mean_burst_ns(1000, 200, SLICE_NS), 800);
    assert_eq!(mean_burst_ns(1000, 1800, SLICE_NS), 1200);
    assert_eq!(mean_burst_ns(0, 9 * SLICE_NS, SLICE_NS), SLICE_NS / 4);
    assert_eq!(mean_burst_ns(SLICE_NS, 9 * SLICE_NS, SLICE_NS), SLICE_NS);
    assert_eq!(mean_burst_ns(1, 0, SLICE_NS), 0);
}

#[test]
fn sleep_earns_nothing_but_what_a_run_is_shorter_than_a_slice() {
    // A CPU-bound task that has slept for long is placed with the others.
    assert_eq!(woken(0, 0, SLICE_NS), CLOCK_NS);
    // A periodic task is placed before all that began a slice just now.
    assert_eq!(woken(0, 0, MS / 10), CLOCK_NS - SLICE_NS + MS / 10);
    // A negative lag is kept.
    assert_eq!(woken(CLOCK_NS + MS, 0, MS / 10), CLOCK_NS + MS);
    // A positive lag is kept.
    assert_eq!(woken(0, 2 * MS, SLICE_NS), CLOCK_NS - 2 * MS);
    assert_eq!(woken(0, MS, MS), CLOCK_NS - 2 * MS);
}

#[test]
fn the_lag_is_how_far_behind_it_is() {
    assert_eq!(lag_ns(CLOCK_NS - MS, CLOCK_NS), MS);
    assert_eq!(lag_ns(CLOCK_NS, CLOCK_NS), 0);
    assert_eq!(lag_ns(CLOCK_NS + MS, CLOCK_NS), 0);
    assert_eq!(lag_ns(u64::MAX, 1), 2, "across the wrap");
}

/// A task of nice 0 that was woken at the clock's time, against one that runs.
#[test]
fn a_short_run_preempts_at_once_a_long_one_when_the_runner_is_a_slice_ahead() {
    let short = woken(0, 0, MS / 10);
    assert!(wakeup_preempts(
        short,
        weight(NICE_0_WEIGHT),
        MS / 10,
        CLOCK_NS
    ));
    let long = woken(0, 0, SLICE_NS);
    assert!(!wakeup_preempts(
        long,
        weight(NICE_0_WEIGHT),
        SLICE_NS,
        CLOCK_NS
    ));
    let edge = CLOCK_NS + SLICE_NS;
    assert!(!wakeup_preempts(
        long,
        weight(NICE_0_WEIGHT),
        SLICE_NS,
        edge
    ));
    assert!(wakeup_preempts(
        long,
        weight(NICE_0_WEIGHT),
        SLICE_NS,
        edge + 1
    ));
    // Two equal tasks do not preempt each other.
    assert!(!wakeup_preempts(
        short,
        weight(NICE_0_WEIGHT),
        MS / 10,
        short
    ));
    // A light task is later: its run costs more virtual time.
    assert!(!wakeup_preempts(
        short,
        weight(NICE_0_WEIGHT / 100),
        MS / 10,
        CLOCK_NS
    ));
}

/// A task of the host, and a vCPU.
#[test]
fn a_task_of_the_host_goes_on_for_a_tenth_of_a_millisecond() {
    assert_eq!(
        [0, 99_999, 100_000].map(|ran_ns| is_protected(false, ran_ns)),
        [true, true, false]
    );
    assert!(!is_protected(true, 0));
}

#[test]
fn a_cpu_is_handed_over_to_one_that_is_ahead_by_a_sixteenth_of_a_slice_at_most() {
    let first_ns = CLOCK_NS;
    let ahead_ns = SLICE_NS / 16;
    let heirs = [first_ns - MS, first_ns, first_ns + ahead_ns];
    assert!(
        heirs
            .iter()
            .all(|&heir_ns| is_handed_over(heir_ns, first_ns, SLICE_NS))
    );
    assert!(!is_handed_over(first_ns + ahead_ns + 1, first_ns, SLICE_NS));
    // Virtual times go around.
    assert!(is_handed_over(5, u64::MAX - 5, SLICE_NS));
}

/// Two that answer each other, 70 us each, beside one that waits: for how long they pass it by.
#[test]
fn who_waits_is_passed_by_for_an_eighth_of_a_slice_and_a_run_of_each() {
    const RUN_NS: u64 = 70_000;
    let (mut pair, first_ns) = ([CLOCK_NS; 2], CLOCK_NS);
    let mut runs = 0;
    while is_handed_over(pair[(runs + 1) % 2], first_ns, SLICE_NS) {
        runs += 1;
        pair[runs % 2] += RUN_NS;
    }
    let passed_ns = runs as u64 * RUN_NS;
    assert!(runs > 0 && passed_ns <= SLICE_NS / 8 + 2 * RUN_NS, "{runs}");
}

#[test]
fn who_has_woken_one_hands_over_and_the_queues_are_looked_at_once_a_slice() {
    assert_eq!([0, 1, 2, 3].map(hands_over), [false, true, false, false]);
    assert_eq!(
        [0, SLICE_NS - 1, SLICE_NS, u64::MAX / 2].map(|since_ns| may_skip_queues(
            CLOCK_NS,
            CLOCK_NS + since_ns,
            SLICE_NS
        )),
        [true, true, false, false]
    );
}

/// A task that sleeps and wakes up beside one that never sleeps gets at most half of the CPU, and a slice.
fn share_of_a_sleeper(runs: &[(u64, u64)]) -> (u64, u64) {
    let (mut hog_ns, mut sleeper_ns, mut now_ns) = (0, 0, 0_u64);
    let (mut hog, mut sleeper, mut clock) = (0_u64, 0_u64, 0_u64);
    let (mut lag, mut burst) = (0, SLICE_NS);
    for &(run_ns, sleep_ns) in runs {
        sleeper = placed_vtime_ns(sleeper, weight(NICE_0_WEIGHT), 0, clock, SLICE_NS);
        sleeper = woken_vtime_ns(sleeper, weight(NICE_0_WEIGHT), lag, burst, clock, SLICE_NS);
        let mut left_ns = run_ns;
        while left_ns > 0 {
            let step_ns = left_ns.min(MS / 10);
            if before(sleeper, hog) {
                clock = clock.max(sleeper.min(hog));
                sleeper += step_ns;
                sleeper_ns += step_ns;
                left_ns -= step_ns;
            } else {
                clock = clock.max(hog);
                hog += step_ns;
                hog_ns += step_ns;
            }
            now_ns += step_ns;
        }
        burst = expected_burst_ns(burst, run_ns, SLICE_NS);
        lag = lag_ns(sleeper, clock);
        hog += sleep_ns;
        hog_ns += sleep_ns;
        clock = clock.max(hog);
        now_ns += sleep_ns;
    }
    assert_eq!(now_ns, hog_ns + sleeper_ns);
    (sleeper_ns, hog_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whenever and however long it sleeps.
    #[test]
    fn no_pattern_of_sleep_buys_a_share(runs in prop::collection::vec((1_000..5 * MS, 0..5 * MS), 1..200)) {
        let (sleeper_ns, hog_ns) = share_of_a_sleeper(&runs);
        prop_assert!(sleeper_ns <= hog_ns + 2 * SLICE_NS, "{sleeper_ns} {hog_ns}");
    }

    /// For any weight and clock: never further behind than a slice or the lag, and never moved ahead.
    #[test]
    fn placing_is_bounded(ahead in -(1_i64 << 61)..1 << 61, clock in any::<u64>(), own in 3_u32..102_400, burst in 0..=SLICE_NS, lag in 0..20 * MS) {
        let vtime = clock.wrapping_add_signed(ahead);
        let weight = weight(own);
        let placed = woken_vtime_ns(vtime, weight, lag, burst, clock, SLICE_NS);
        prop_assert!(!before(placed, vtime));
        let furthest = weight.weighted_ns(SLICE_NS).max(lag);
        prop_assert!(!before(placed, clock.wrapping_sub(furthest)));
    }
}
