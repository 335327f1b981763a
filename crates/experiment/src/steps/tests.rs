// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of comparisons.

use super::*;

/// Policies of our scheduler.
fn of(policies: usize) -> Columns {
    Columns {
        ideal: true,
        null: true,
        policies,
        unsteered: Unsteered::default(),
        rivals: 0,
        steer: policies > 0,
    }
}

/// The same beside so many rivals.
fn beside(policies: usize, rivals: usize) -> Columns {
    Columns {
        rivals,
        ..of(policies)
    }
}

/// The steps as a machine would see them: which VMs run, who schedules, since what nothing was left out.
fn follow(steps: &[Step], columns: Columns, mut measured: impl FnMut(Column, usize, u64)) {
    let (mut vms, mut now, mut fresh) = (None, Steered::Not, false);
    let mut loaded = Vec::new();
    for &step in steps {
        match step {
            Step::Load(programs) => {
                assert_eq!(vms, None, "beside VMs: {steps:?}");
                loaded.push(programs);
            }
            Step::Start(which, seed) => {
                assert_eq!((vms, now), (None, Steered::Not), "{steps:?}");
                vms = Some((which, seed));
            }
            Step::Steer(to) => {
                if let Steered::Policy(policy) = to {
                    let neutral = columns.neutral(policy);
                    assert_eq!(now, neutral, "a policy inherits: {steps:?}");
                }
                if matches!(to, Steered::Rival(_)) || matches!(now, Steered::Rival(_)) {
                    assert!(now == Steered::Not || to == Steered::Not, "{steps:?}");
                }
                let ours = match to {
                    Steered::Policy(policy) => !columns.unsteered.contains(policy),
                    other => other == Steered::RefuseYields,
                };
                if now == Steered::Not && columns.steer && ours {
                    assert_eq!(loaded[0], Programs::Scheduler, "{steps:?}");
                    loaded.remove(0);
                }
                assert!(to != now && vms.is_some_and(|(vms, _)| vms == Vms::Loaded));
                (now, fresh) = (to, true);
            }
            Step::Discard => fresh = false,
            Step::Measure(column, pair) => {
                let (which, seed) = vms.expect("VMs run");
                assert!(!fresh, "{column:?} right after a change: {steps:?}");
                assert_eq!(which == Vms::Ideal, column == Column::Ideal);
                assert_eq!(now, steered(column));
                measured(column, pair, seed);
            }
            Step::Explain | Step::Stop => {
                if step == Step::Explain {
                    assert_eq!(loaded.pop(), Some(Programs::Observer), "{steps:?}");
                }
                assert_eq!((now, fresh), (Steered::Not, false), "{steps:?}");
                vms = None;
            }
        }
    }
    assert_eq!((vms, loaded), (None, Vec::new()));
}

#[test]
fn every_pair_has_every_column_once_under_its_own_scheduler() {
    let windows = Columns {
        steer: false,
        unsteered: Unsteered::ALL,
        ..of(3)
    };
    let both = Columns {
        unsteered: Unsteered(0b101),
        ..of(4)
    };
    let some = [
        (1, of(0)),
        (1, of(1)),
        (2, of(1)),
        (3, of(2)),
        (7, of(5)),
        (1, beside(0, 1)),
        (2, beside(1, 1)),
        (3, beside(2, 3)),
    ];
    let others = [(1, windows), (4, windows), (1, both), (4, both)];
    for (pairs, columns) in some.into_iter().chain(others) {
        let mut seen = Vec::new();
        follow(&steps(pairs, columns), columns, |column, pair, seed| {
            assert_eq!(seed, pair as u64 / 2);
            seen.push((pair, column));
        });
        seen.sort();
        let mut expected = vec![Column::Ideal, Column::Stock, Column::StockAgain];
        if columns.steer {
            expected.push(Column::RefuseYields);
        }
        expected.extend((0..columns.policies).map(Column::Policy));
        expected.extend((0..columns.rivals).map(Column::Rival));
        let expected: Vec<_> = (0..pairs)
            .flat_map(|pair| expected.iter().map(move |&column| (pair, column)))
            .collect();
        assert_eq!(seen, expected, "{pairs} pairs, {columns:?}");
    }
}

#[test]
fn the_second_pair_of_a_block_goes_back() {
    let mut order = Vec::new();
    follow(&steps(2, of(1)), of(1), |column, _, _| order.push(column));
    use Column::{Ideal, Policy, RefuseYields, Stock, StockAgain};
    let forth = [Stock, StockAgain, RefuseYields, Policy(0)];
    let back = [Policy(0), RefuseYields, StockAgain, Stock];
    assert_eq!(order, [&[Ideal, Ideal][..], &forth, &back].concat());
}

/// One attachment of ours serves a block: those for which the host's scheduler stays, or another comes, are before it.
#[test]
fn ours_is_attached_once_after_all_others() {
    use Column::{Ideal, Policy, RefuseYields, Rival, Stock, StockAgain};
    let beside_rivals = (
        beside(1, 2),
        vec![Rival(0), Rival(1), RefuseYields, Policy(0)],
    );
    let of_the_hosts = Columns {
        unsteered: Unsteered(0b101),
        ..beside(3, 1)
    };
    let hosts_first = vec![Rival(0), Policy(0), Policy(2), RefuseYields, Policy(1)];
    for (columns, others) in [beside_rivals, (of_the_hosts, hosts_first)] {
        let steps = steps(2, columns);
        let mut order = Vec::new();
        follow(&steps, columns, |column, _, _| order.push(column));
        let forth = [vec![Stock, StockAgain], others].concat();
        let back = forth.iter().rev().copied().collect();
        assert_eq!(order, [vec![Ideal, Ideal], forth, back].concat());
        let attached = |step: &&Step| **step == Step::Load(Programs::Scheduler);
        assert_eq!(steps.iter().filter(attached).count(), 1);
    }
}

#[test]
fn vms_keep_running_and_one_attach_serves_a_block() {
    let steps = steps(4, of(2));
    let count = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
    assert_eq!(count(|step| matches!(step, Step::Start(Vms::Loaded, _))), 2);
    assert_eq!(count(|step| matches!(step, Step::Start(Vms::Ideal, _))), 2);
    // Refused, first, refused, second; refused, first, refused, and away: eight changes a block; one attaches, one detaches.
    assert_eq!(count(|step| matches!(step, Step::Steer(_))), 2 * 8);
    assert_eq!(count(|step| matches!(step, Step::Steer(Steered::Not))), 2);
    assert_eq!(count(|step| matches!(step, Step::Explain)), 1);
    // The ideal comes before the loaded VMs in block 0, after them in block 1.
    assert_eq!(steps[0], Step::Start(Vms::Ideal, 0));
    assert_eq!(steps[steps.len() - 4], Step::Start(Vms::Ideal, 1));
}

/// Where nothing is left to chance, and no VM can be as large as the host.
#[test]
fn columns_that_say_nothing_are_left_out() {
    let columns = Columns {
        ideal: false,
        null: false,
        steer: false,
        unsteered: Unsteered(1),
        ..of(1)
    };
    let mut order = Vec::new();
    follow(&steps(3, columns), columns, |column, pair, _| {
        order.push((column, pair));
    });
    use Column::{Policy, Stock};
    let expected = [
        (Stock, 0),
        (Policy(0), 0),
        (Policy(0), 1),
        (Stock, 1),
        (Stock, 2),
        (Policy(0), 2),
    ];
    assert_eq!(order, expected);
}

/// The locks of a point are neighbours in time, also where they are numbered lock by lock, and every second round goes back.
#[test]
fn locks_of_a_point_are_measured_side_by_side_and_back() {
    let (points, mut order) = ([0, 1, 0, 1], Vec::new());
    for step in locks(&points, 3) {
        match step {
            Step::Measure(Column::Lock(lock), repetition) => order.push((repetition, lock)),
            other => panic!("{other:?}: nothing else is to be done"),
        }
    }
    let forth = [0, 2, 1, 3];
    let back = [3, 1, 2, 0];
    let rounds = [forth, back, forth].into_iter().enumerate();
    let expected: Vec<_> = rounds
        .flat_map(|(repetition, round)| round.map(|lock| (repetition, lock)))
        .collect();
    assert_eq!(order, expected);
    assert!(locks(&points, 0).is_empty() && locks(&[], 3).is_empty());
}
