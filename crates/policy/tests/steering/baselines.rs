// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proposals of others: lag credit adapted to unspin's scheduler, and relaxed co-scheduling.

use crate::common::{UNKNOWN, facts, seen};
use unspin_policy::steering::{
    Decision, Facts, Memory, OrderFacts, Policies, UNSPIN_NO, UNSPIN_YES, gang_cuts,
};

const MS: u64 = 1_000_000;

/// Both in one queue of four tasks, whose clock is at 100 ms; the scheduler lets a task be at most 10 ms behind.
fn ordered(self_vtime: u64, candidate_vtime: u64) -> Facts {
    Facts {
        order: OrderFacts {
            self_vtime,
            candidate_vtime,
            average_vtime: 100 * MS,
            limit_vtime: 10 * MS,
            runnable: 4,
            same_queue: UNSPIN_YES,
            ..OrderFacts::UNKNOWN
        },
        ..facts()
    }
}

fn policies(names: &str) -> Policies {
    names.parse().expect("policies' names")
}

fn credited(facts: &Facts) -> Decision {
    policies("lag-credit").on_yield(facts, &mut Memory::default())
}

fn called(facts: &Facts) -> Decision {
    policies("gang").on_call(facts, &mut Memory::default())
}

/// The yielder pays what the candidate is credited.
fn buddy(threshold_ns: u32, credit_ns: u32) -> Decision {
    Decision::YieldBuddy {
        threshold_ns,
        raise_ns: credit_ns,
        credit_ns,
    }
}

/// 3 ms after the clock: moved back to it, and 0.1 ms further for each task of the queue.
#[test]
fn who_is_not_eligible_gets_lag() {
    let credit = |vtime| credited(&ordered(100 * MS, vtime));
    assert_eq!(credit(103 * MS), buddy(10_000_000, 3_400_000));
    assert_eq!(credit(100 * MS + 1), buddy(10_000_000, 400_001));
    // Eligible: nothing is credited, and it runs whichever task has run less.
    assert_eq!(credit(100 * MS), buddy(10_000_000, 0));
    assert_eq!(credit(92 * MS), buddy(10_000_000, 0));
}

#[test]
fn lag_credit_knows_its_bounds() {
    let mut deep = ordered(100 * MS, 103 * MS);
    deep.order.runnable = 1_000;
    assert_eq!(credited(&deep), buddy(10_000_000, 10_000_000), "the limit");
    // Further ahead than can be credited at once: not eligible, so it runs only if it is first anyway.
    assert_eq!(
        credited(&ordered(100 * MS, 110 * MS)),
        buddy(10_000_000, 10_000_000)
    );
    let late = ordered(100 * MS, 110 * MS + 1);
    assert_eq!(credited(&late), buddy(0, 10_000_000));
    let mut far = ordered(100 * MS, 101 * MS + (1 << 40));
    far.order.limit_vtime = 1 << 40;
    let Decision::YieldBuddy { credit_ns, .. } = credited(&far) else {
        panic!("no buddy")
    };
    assert!(credit_ns > 4_000_000_000, "as much as there is room for");
}

#[test]
fn without_one_queue_it_is_a_plain_yield_buddy() {
    let mut apart = ordered(100 * MS, 103 * MS);
    apart.order.same_queue = UNSPIN_NO;
    assert_eq!(credited(&apart), buddy(apart.threshold_ns, 0));
    assert_eq!(
        credited(&facts()),
        buddy(facts().threshold_ns, 0),
        "nobody knows"
    );
    let mut runs = ordered(100 * MS, 103 * MS);
    runs.candidate.descheduled = seen(0);
    assert_eq!(credited(&runs), Decision::Refuse);
}

/// The slice of the facts is 1.4 ms: siblings up to 2.8 ms of virtual time later are called.
#[test]
fn siblings_who_are_next_are_called() {
    let call = |later: u64| called(&ordered(100 * MS, 100 * MS + later));
    assert_eq!(call(0), buddy(2_800_000, 0));
    assert_eq!(call(2_800_000), buddy(2_800_000, 0));
    assert_eq!(call(2_800_001), Decision::Refuse);
    let behind = ordered(100 * MS, 90 * MS);
    assert_eq!(called(&behind), buddy(2_800_000, 0));
    // Virtual times wrap around.
    assert_eq!(called(&ordered(u64::MAX, MS)), buddy(2_800_000, 0));
    assert_eq!(called(&ordered(u64::MAX, 3 * MS)), Decision::Refuse);
}

#[test]
fn who_runs_or_is_not_known_to_wait_is_not_called() {
    let refused = |change: &dyn Fn(&mut Facts)| {
        let mut facts = ordered(100 * MS, 100 * MS);
        change(&mut facts);
        assert_eq!(called(&facts), Decision::Refuse);
    };
    refused(&|facts| facts.candidate.descheduled = seen(0));
    refused(&|facts| facts.candidate.descheduled = UNKNOWN);
    refused(&|facts| facts.order.same_queue = UNSPIN_NO);
    refused(&|facts| facts.order = OrderFacts::UNKNOWN);
    // A slice out of all bounds: no overflow.
    let mut long = ordered(0, 4_000_000_000);
    long.slice_ns = u32::MAX;
    assert!(matches!(called(&long), Decision::YieldBuddy { .. }));
}

#[test]
fn only_gang_calls_and_only_after_a_while() {
    for name in Policies::names().filter(|name| !["slice", "gang"].contains(name)) {
        let decision = policies(name).on_call(&ordered(0, 0), &mut Memory::default());
        assert_eq!(decision, Decision::Refuse, "{name}");
        assert!(!policies(name).calls_siblings());
    }
    assert!(policies("loan,gang").calls_siblings());
    assert!(!gang_cuts(999_999) && gang_cuts(1_000_000));
}

/// A gang has no opinion on directed yields: alone it honours KVM's request, with loan it leaves them to loan.
#[test]
fn baselines_combine_with_a_loan() {
    let mut critical = ordered(100 * MS, 103 * MS);
    critical.candidate.critical = seen(1);
    let yields = |names: &str| policies(names).on_yield(&critical, &mut Memory::default());
    assert_eq!(yields("gang"), Decision::Direct);
    assert!(matches!(yields("loan,gang"), Decision::Lend(_)));
    // Loan is called first; lag credit decides about guests without a pv page.
    assert!(matches!(yields("loan,lag-credit"), Decision::Lend(_)));
    let silent = ordered(100 * MS, 103 * MS);
    let decision = policies("loan,lag-credit").on_yield(&silent, &mut Memory::default());
    assert_eq!(decision, buddy(10_000_000, 3_400_000));
    assert_eq!(
        policies("gang,loan,lag-credit").to_string(),
        "loan,lag-credit,gang"
    );
}
