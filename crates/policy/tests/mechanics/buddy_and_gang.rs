// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which task runs after a yield buddy or a call, and whose slice is cut.

use super::MS;
use unspin_policy::mechanics::{BuddyOutcome, BuddyPlaces, GangPlace, called_until_ns, is_called};

const THRESHOLD_NS: u32 = 2_000_000;

fn outcome(candidate_ns: u64, waiting_ns: u64, yielder_ns: Option<u64>) -> BuddyOutcome {
    let places = BuddyPlaces {
        candidate_ns,
        waiting_ns,
        yielder_ns,
        threshold_ns: THRESHOLD_NS,
    };
    places.outcome()
}

#[test]
fn a_candidate_within_the_threshold_of_whoever_is_first_runs() {
    use BuddyOutcome::{IsTooUnfair, OthersRun, Runs};
    assert_eq!(outcome(5 * MS, 3 * MS, None), Runs);
    assert_eq!(outcome(5 * MS + 1, 3 * MS, None), OthersRun);
    // The yielder is first, and no other task is near it.
    assert_eq!(outcome(5 * MS, 5 * MS, Some(3 * MS)), Runs);
    assert_eq!(outcome(6 * MS, 6 * MS, Some(3 * MS)), IsTooUnfair);
    // Another task is near it: the yielder is passed over, as CFS's skip buddy.
    assert_eq!(outcome(6 * MS, 4 * MS, Some(3 * MS)), OthersRun);
    // The yielder sleeps: it is not considered.
    assert_eq!(outcome(6 * MS, 6 * MS, None), Runs);
}

#[test]
fn a_candidate_that_is_first_itself_runs_also_across_the_wrap() {
    let begin = u64::MAX - MS;
    assert_eq!(
        outcome(begin, begin.wrapping_add(9 * MS), Some(begin + 1)),
        BuddyOutcome::Runs
    );
    assert_eq!(
        outcome(begin.wrapping_add(9 * MS), begin, Some(begin + 1)),
        BuddyOutcome::OthersRun
    );
}

#[test]
fn only_another_vms_own_slice_that_has_run_for_a_while_is_cut() {
    let of = |vm, borrows| GangPlace::new(vm, borrows, 10 * MS);
    let now_ns = 11 * MS;
    assert!(of(Some(1), false).may_cut(false, 0, now_ns));
    assert!(!of(Some(1), false).may_cut(false, 0, now_ns - 1));
    assert!(!of(Some(0), false).may_cut(false, 0, now_ns), "its own VM");
    assert!(!of(None, false).may_cut(false, 0, now_ns), "no vCPU");
    assert!(!of(Some(1), true).may_cut(false, 0, now_ns), "on a loan");
    assert!(
        !of(Some(1), false).may_cut(true, 0, now_ns),
        "one call at a time"
    );
}

#[test]
fn a_call_stands_for_a_budget() {
    let until_ns = called_until_ns(5 * MS);
    assert_eq!(until_ns, 6 * MS);
    assert!(is_called(until_ns, 6 * MS - 1));
    assert!(!is_called(until_ns, 6 * MS));
    assert!(!is_called(0, 5 * MS), "never called");
}
