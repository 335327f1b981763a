// SPDX-License-Identifier: MIT OR Apache-2.0
//! Yields, directed yields, buddies, debooster and lag credit.

use super::*;
use unspin_policy::Deboost;

#[test]
fn cfs_runs_the_target_of_a_directed_yield_within_the_granularity() {
    for version in CFS {
        for (behind, runs) in [(0, true), (MILLISECOND, true), (MILLISECOND + 1, false)] {
            let mut fair = plain(version);
            let [yielder, target, other] = [0; 3].map(|_| task(&mut fair, ROOT));
            for task in [yielder, other] {
                set_task(&mut fair, task, 10 * MILLISECOND);
            }
            set_task(&mut fair, target, 10 * MILLISECOND + behind);
            assert_eq!(fair.yield_to(0, CPU, target), YieldTo::Yielded);
            let expected = if runs { target } else { other };
            assert_eq!(
                next(&mut fair, 0),
                Some(expected),
                "{version:?}: target {behind} ns behind"
            );
        }
    }
}

#[test]
fn cfs_skips_a_yielder_unless_the_second_is_far_behind() {
    for version in CFS {
        for (behind, skipped) in [(MILLISECOND, true), (MILLISECOND + 1, false)] {
            let mut fair = plain(version);
            let [yielder, second] = [0; 2].map(|_| task(&mut fair, ROOT));
            set_task(&mut fair, yielder, 10 * MILLISECOND);
            set_task(&mut fair, second, 10 * MILLISECOND + behind);
            fair.yield_now(0, CPU);
            assert_eq!(
                next(&mut fair, 0) == Some(second),
                skipped,
                "{version:?}: {behind} ns"
            );
        }
    }
}

#[test]
fn eevdf_honours_the_target_from_6_19_on_while_it_is_eligible() {
    for version in EEVDF {
        for target_ahead in [0, 2 * MILLISECOND] {
            let mut fair = plain(version);
            let [yielder, other, target] = [0; 3].map(|_| task(&mut fair, ROOT));
            set_task(&mut fair, yielder, 10 * MILLISECOND);
            set_task(&mut fair, other, 10 * MILLISECOND);
            set_task(&mut fair, target, 10 * MILLISECOND + target_ahead);
            assert_eq!(fair.yield_to(0, CPU, target), YieldTo::Yielded);
            // The other one came first and has the earliest deadline: the buddy decides.
            let honoured = version >= Version::Eevdf6_19 && target_ahead == 0;
            let expected = if honoured { target } else { other };
            assert_eq!(
                next(&mut fair, 0),
                Some(expected),
                "{version:?}: target {target_ahead} ns ahead"
            );
        }
    }
}

#[test]
fn the_target_must_be_eligible_at_every_level() {
    for version in [Version::Eevdf6_19, Version::Eevdf7_2] {
        for group_ahead in [0, 4 * MILLISECOND] {
            let mut fair = plain(version);
            let group = fair.add_group(ROOT, 1024);
            let [yielder, other] = [0; 2].map(|_| task(&mut fair, ROOT));
            let target = task(&mut fair, group);
            set_task(&mut fair, yielder, 10 * MILLISECOND);
            set_task(&mut fair, other, 10 * MILLISECOND);
            let around = fair.entities[entity(&fair, target) as usize].parent;
            set(&mut fair, around, 10 * MILLISECOND + group_ahead);
            fair.yield_to(0, CPU, target);
            let expected = if group_ahead == 0 { target } else { other };
            assert_eq!(
                next(&mut fair, 0),
                Some(expected),
                "{version:?}: group {group_ahead} ns ahead"
            );
        }
    }
}

#[test]
fn a_yield_costs_a_slice_or_forfeits_it() {
    for version in EEVDF {
        let mut fair = plain(version);
        let [yielder, _other] = [0; 2].map(|_| task(&mut fair, ROOT));
        let id = entity(&fair, yielder) as usize;
        let (old_vruntime, old_deadline) = (fair.entities[id].vruntime, fair.entities[id].deadline);
        let slice_ns = fair.tunables.base_slice_ns as i64;
        fair.yield_now(0, CPU);
        assert_eq!(
            fair.entities[id].deadline,
            old_deadline + slice_ns,
            "{version:?}"
        );
        let forfeited = if version >= Version::Eevdf6_19 {
            old_deadline
        } else {
            old_vruntime
        };
        assert_eq!(fair.entities[id].vruntime, forfeited, "{version:?}");
    }
}

#[test]
fn nobody_yields_to_sleepers_or_when_alone() {
    for (_, version) in Version::ALL {
        let mut fair = plain(version);
        let yielder = task(&mut fair, ROOT);
        let asleep = fair.add_task(ROOT, 1024, Allowed::All, None);
        let alone = if version == Version::Cfs3_5 {
            YieldTo::Refused
        } else {
            YieldTo::Alone
        };
        assert_eq!(fair.yield_to(0, CPU, asleep), alone, "{version:?}");
        task(&mut fair, ROOT);
        assert_eq!(
            fair.yield_to(0, CPU, asleep),
            YieldTo::Refused,
            "{version:?}"
        );
        assert_eq!(
            fair.yield_to(0, CPU, yielder),
            YieldTo::Refused,
            "{version:?}: it runs"
        );
    }
}

/// A yielder, and a target 5 ms of virtual time ahead; each in its own group if requested.
fn far_target(version: Version, debooster: Deboost, apart: bool) -> (Fair, Task, Task) {
    let mut fair = with(
        version,
        Options {
            debooster,
            ..Options::default()
        },
    );
    let groups = [0; 2].map(|_| {
        if apart {
            fair.add_group(ROOT, 1024)
        } else {
            ROOT
        }
    });
    let [yielder, target] = groups.map(|group| task(&mut fair, group));
    for (task, vruntime) in [(yielder, 10 * MILLISECOND), (target, 15 * MILLISECOND)] {
        set_task(&mut fair, task, vruntime);
        let around = fair.entities[entity(&fair, task) as usize].parent;
        if around != NONE {
            set(&mut fair, around, vruntime);
        }
    }
    (fair, yielder, target)
}

#[test]
fn the_debooster_raises_the_yielder_to_a_granularity_below_the_target() {
    for version in CFS {
        for (debooster, apart, runs) in [
            (Deboost::Off, false, false),
            (Deboost::Paper, false, true),
            (Deboost::Ancestor, false, true),
            (Deboost::Paper, true, false),
            (Deboost::Ancestor, true, true),
        ] {
            let (mut fair, yielder, target) = far_target(version, debooster, apart);
            let before = (vruntime(&fair, yielder), vruntime(&fair, target));
            fair.yield_to(0, CPU, target);
            assert_eq!(
                next(&mut fair, 0) == Some(target),
                runs,
                "{version:?} {debooster:?} apart {apart}"
            );
            assert_eq!(
                vruntime(&fair, target),
                before.1,
                "the target's is never touched"
            );
            if runs && !apart {
                assert_eq!(vruntime(&fair, yielder), before.1 - MILLISECOND);
            } else {
                assert_eq!(vruntime(&fair, yielder), before.0);
            }
        }
    }
}

#[test]
fn the_debooster_never_lowers_a_virtual_time() {
    for (target_ahead, expected) in [(-5, 10), (0, 10), (1, 10), (3, 12)] {
        let (mut fair, yielder, target) = far_target(Version::Cfs5_6, Deboost::Paper, false);
        set_task(&mut fair, target, (10 + target_ahead) * MILLISECOND);
        fair.yield_to(0, CPU, target);
        assert_eq!(
            vruntime(&fair, yielder),
            expected * MILLISECOND,
            "target {target_ahead} ms ahead"
        );
    }
}

#[test]
fn lag_credit_makes_the_target_run_next() {
    for version in [Version::Eevdf6_19, Version::Eevdf7_2] {
        for lag_credit in [false, true] {
            for grouped in [false, true] {
                let mut fair = with(
                    version,
                    Options {
                        lag_credit,
                        ..Options::default()
                    },
                );
                let group = fair.add_group(ROOT, 1024);
                let [_yielder, other] = [0; 2].map(|_| task(&mut fair, ROOT));
                let target = task(&mut fair, if grouped { group } else { ROOT });
                let far = if grouped {
                    fair.entities[entity(&fair, target) as usize].parent
                } else {
                    entity(&fair, target)
                };
                let ahead = fair.entities[far as usize].vruntime + 2 * MILLISECOND;
                set(&mut fair, far, ahead);
                fair.yield_to(0, CPU, target);
                let expected = if lag_credit { target } else { other };
                assert_eq!(
                    next(&mut fair, 0),
                    Some(expected),
                    "{version:?} grouped {grouped}"
                );
            }
        }
    }
}
