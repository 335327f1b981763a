// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights through nested groups, and what CPU time costs.

use super::{MS, SLICE_NS};
use proptest::prelude::*;
use unspin_policy::mechanics::{
    GroupWeight, LONGEST_RUN_NS, NICE_0_WEIGHT, Weight, weight_of_cgroup, weight_of_nice,
};

/// A group of this weight with this sum of active weights.
fn group(weight: u32, sum: i64) -> GroupWeight {
    let mut group = GroupWeight::new(weight);
    group.add(sum);
    group
}

#[test]
fn time_costs_by_weight() {
    let plain = Weight::flat(NICE_0_WEIGHT, []);
    assert_eq!(plain.weighted_ns(MS), MS);
    assert_eq!(Weight::flat(512, []).weighted_ns(4 * MS), 8 * MS);
    assert_eq!(Weight::flat(1_024_000, []).weighted_ns(4 * MS), 4_000);
    assert_eq!(plain.weighted_ns(0), 0);
}

/// Corners of the kernel's table: each step of nice is a factor of some 1.25.
#[test]
fn nice_values_and_cgroups_weigh_as_on_the_fair_class() {
    let of = [-21, -20, -1, 0, 1, 6, 19, 20].map(weight_of_nice);
    assert_eq!(of, [88_761, 88_761, 1_277, 1_024, 820, 272, 15, 15]);
    for nice in -20..19 {
        let step = f64::from(weight_of_nice(nice)) / f64::from(weight_of_nice(nice + 1));
        assert!((1.19..1.31).contains(&step), "{nice}: {step}");
    }
    let of = [1, 50, 100, 101, 10_000].map(weight_of_cgroup);
    assert_eq!(of, [10, 512, 1_024, 1_034, 102_400]);
}

#[test]
fn no_charge_is_for_more_than_the_longest_run() {
    let plain = Weight::flat(NICE_0_WEIGHT, []);
    assert_eq!(plain.weighted_ns(u64::MAX), LONGEST_RUN_NS);
    // It fits for the lightest weight too.
    let lightest = Weight::flat(3, [&group(10, i64::from(u32::MAX)), &group(10, 102_400)]);
    assert!(lightest < plain);
    assert!(lightest.weighted_ns(u64::MAX) < 1 << 63);
}

#[test]
fn a_task_weighs_its_share_of_each_group_above() {
    // It has 300 of 400 in a group that has 100 of 200 in a group that has 100.
    let inner = group(100, 400);
    let outer = group(100, 200);
    let task = Weight::flat(300, [&inner, &outer]);
    let expected = 300.0 / 400.0 * 100.0 / 200.0 * 100.0;
    let cost = task.weighted_ns(MS) as f64 / MS as f64;
    assert!((cost - 1024.0 / expected).abs() < 1e-4, "{cost}");
    // A task alone in its group weighs what the group does.
    let alone = Weight::flat(3, [&group(1024, 3)]);
    assert_eq!(alone, Weight::flat(NICE_0_WEIGHT, []));
}

#[test]
fn a_sum_that_is_just_changing_says_nothing() {
    for sum in [0, -5] {
        assert_eq!(
            Weight::flat(100, [&group(50, sum)]),
            Weight::flat(100, []),
            "{sum}"
        );
    }
}

#[test]
fn how_far_from_others_grows_as_weight_falls() {
    let reach = |weight| Weight::flat(weight, []).reach_ns(SLICE_NS);
    assert_eq!(reach(NICE_0_WEIGHT), 2 * SLICE_NS + 4 * MS);
    assert_eq!(reach(64), 16 * reach(NICE_0_WEIGHT));
    assert_eq!(reach(16 * 1_024), reach(NICE_0_WEIGHT) / 16);
}

#[test]
fn a_group_counts_above_while_anything_in_it_wants_to_run() {
    let mut group = GroupWeight::new(70);
    assert_eq!(group.add(100), 70, "the first");
    assert_eq!(group.add(300), 0);
    assert_eq!(group.set_weight(90), 20, "while it is active");
    assert_eq!(group.add(-100), 0);
    assert_eq!(group.add(-300), -90, "the last, with what was carried");
    assert_eq!(group.set_weight(10), 0);
    assert_eq!(group.add(1), 10);
}

#[test]
fn opposite_changes_may_arrive_in_either_order() {
    let mut group = GroupWeight::new(70);
    // The removal may be seen before the addition.
    assert_eq!(group.add(-100), 0);
    assert_eq!(group.add(100), 0);
    assert_eq!(group, GroupWeight::new(70));
}

proptest! {
    /// In any order of changes a parent counts a group's weight while its sum is positive, and nothing afterwards.
    #[test]
    fn what_is_carried_up_adds_up(steps in prop::collection::vec((-10_000_i64..10_000, 1_u32..10_000, any::<bool>()), 1..200)) {
        let mut group = GroupWeight::new(100);
        let (mut sum, mut carried, mut weight) = (0, 0, 100);
        for (change, to, sets) in steps {
            if sets {
                carried += group.set_weight(to);
                weight = to;
            } else {
                carried += group.add(change);
                sum += change;
            }
            prop_assert_eq!(group.sum(), sum);
            prop_assert_eq!(carried, if sum > 0 { i64::from(weight) } else { 0 });
        }
    }
}
