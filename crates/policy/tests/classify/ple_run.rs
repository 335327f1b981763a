// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 29: runs against a plain implementation of the ruling, and the marks of Figure 4.

use proptest::prelude::*;
use unspin_policy::{Run, RunExit, RunRule, RunShares};

fn exit(location: Option<u64>, other_exits: u32, interrupt_exits: u32) -> RunExit {
    RunExit {
        location,
        other_exits,
        interrupt_exits,
    }
}

/// The lengths of all runs, the last one included.
fn lengths(exits: &[RunExit], rule: RunRule) -> Vec<u64> {
    let mut run = Run::default();
    let mut ended: Vec<u64> = exits
        .iter()
        .filter_map(|exit| run.add(*exit, rule))
        .collect();
    ended.extend(run.end());
    assert_eq!(run.end(), None);
    ended
}

/// The same, by cutting the sequence between any two neighbours that are not continuous.
fn cut(exits: &[RunExit], rule: RunRule) -> Vec<u64> {
    let continuous = |pair: &[RunExit]| {
        pair[0].location.is_some()
            && pair[0].location == pair[1].location
            && pair[1].other_exits == 0
            && (pair[1].interrupt_exits == 0 || rule == RunRule::InterruptsIgnored)
    };
    let mut lengths = Vec::new();
    for (index, exit) in exits.iter().enumerate() {
        if exit.location.is_none() {
            continue;
        }
        if index > 0 && continuous(&exits[index - 1..=index]) {
            *lengths.last_mut().expect("a run goes on") += 1;
        } else {
            lengths.push(1);
        }
    }
    lengths
}

#[test]
fn what_ends_a_run() {
    let here = exit(Some(8), 0, 0);
    let both = [RunRule::InterruptsEnd, RunRule::InterruptsIgnored];
    for rule in both {
        assert_eq!(lengths(&[here; 3], rule), [3]);
        assert_eq!(lengths(&[here, exit(Some(9), 0, 0), here], rule), [1, 1, 1]);
        assert_eq!(lengths(&[here, here, exit(Some(8), 1, 0)], rule), [2, 1]);
        assert_eq!(lengths(&[here, exit(None, 0, 0), here], rule), [1, 1]);
        assert!(lengths(&[exit(None, 0, 0); 4], rule).is_empty());
    }
    let interrupted = [here, exit(Some(8), 0, 1), here];
    assert_eq!(lengths(&interrupted, RunRule::InterruptsEnd), [1, 2]);
    assert_eq!(lengths(&interrupted, RunRule::InterruptsIgnored), [3]);
}

/// VEE'21, section 2.3: with 8 vCPUs two rounds are 16 attempts.
#[test]
fn the_marks_of_figure_4() {
    let mut shares = RunShares::default();
    for length in [16, 17, 100, 101] {
        shares.count(length, 8);
    }
    let expected = RunShares {
        exits: 16 + 17 + 100 + 101,
        above_twice_vcpus: 17 + 100 + 101,
        above_hundred: 101,
        runs: 4,
        longest: 101,
    };
    assert_eq!(shares, expected);
}

proptest! {
    #[test]
    fn runs_are_what_cutting_gives(raw in prop::collection::vec((0u64..4, 0u32..3, 0u32..3), 0..60)) {
        let exits: Vec<RunExit> = raw
            .into_iter()
            .map(|(location, other, interrupts)| exit(location.checked_sub(1), other / 2, interrupts / 2))
            .collect();
        for rule in [RunRule::InterruptsEnd, RunRule::InterruptsIgnored] {
            prop_assert_eq!(lengths(&exits, rule), cut(&exits, rule));
        }
        let total = |rule| lengths(&exits, rule).iter().sum::<u64>();
        let located = exits.iter().filter(|exit| exit.location.is_some()).count() as u64;
        prop_assert_eq!(total(RunRule::InterruptsEnd), located);
        prop_assert_eq!(total(RunRule::InterruptsIgnored), located);
    }
}
