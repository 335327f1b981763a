// SPDX-License-Identifier: MIT OR Apache-2.0
//! A yield as a yield buddy, the debooster's two forms (ruling 30), and eCS's extra schedule (ruling 22), as steering
//! policies.

use crate::common::{UNKNOWN, facts, seen};
use unspin_policy::steering::{
    Decision, Facts, Memory, OrderFacts, Policies, UNSPIN_BUDGET_NS, UNSPIN_NO, UNSPIN_YES,
};

const THRESHOLD_NS: u32 = 2_000_000;

fn policies(names: &str) -> Policies {
    names.parse().expect("policies' names")
}

/// Both in one queue; the candidate is this much further.
fn apart(candidate_ahead_ns: i64, same_group: u32) -> OrderFacts {
    let self_vtime = u64::MAX - 1_000_000; // what is added to it wraps around
    OrderFacts {
        self_vtime,
        candidate_vtime: self_vtime.wrapping_add_signed(candidate_ahead_ns),
        same_queue: UNSPIN_YES,
        same_group,
        ..OrderFacts::UNKNOWN
    }
}

fn to_yield(names: &str, order: OrderFacts) -> Decision {
    let facts = Facts { order, ..facts() };
    policies(names).on_yield(&facts, &mut Memory::default())
}

fn raised(names: &str, order: OrderFacts) -> u32 {
    match to_yield(names, order) {
        Decision::YieldBuddy {
            threshold_ns: THRESHOLD_NS,
            raise_ns,
            credit_ns: 0,
        } => raise_ns,
        other => panic!("{names}: {other:?}"),
    }
}

#[test]
fn a_yield_buddy_changes_no_virtual_time_and_needs_somebody_who_waits() {
    for ahead_ns in [-5_000_000, 0, 5_000_000] {
        assert_eq!(raised("yield-buddy", apart(ahead_ns, UNSPIN_YES)), 0);
    }
    for descheduled in [seen(0), UNKNOWN] {
        for names in ["yield-buddy", "debooster", "debooster-ancestor"] {
            let mut facts = facts();
            facts.candidate.descheduled = descheduled;
            let decision = policies(names).on_yield(&facts, &mut Memory::default());
            assert_eq!(decision, Decision::Refuse, "{names}");
        }
    }
}

#[test]
fn the_debooster_raises_the_spinner_to_a_threshold_below_the_target() {
    for names in ["debooster", "debooster-ancestor"] {
        let raise_ns = |ahead_ns| raised(names, apart(ahead_ns, UNSPIN_YES));
        assert_eq!(raise_ns(9_000_000), 7_000_000);
        assert_eq!(raise_ns(2_000_001), 1);
        // Not further ahead than the threshold, or behind, or no difference: neither is raised or lowered.
        for ahead_ns in [2_000_000, 0, -1, -9_000_000] {
            assert_eq!(raise_ns(ahead_ns), 0, "{ahead_ns}");
        }
        // More than the field can hold: as much as it can.
        assert!(raise_ns(20_000_000_000) > 4_000_000_000);
    }
}

#[test]
fn across_groups_the_papers_form_is_a_yield_buddy_and_ours_is_not() {
    for group in [UNSPIN_NO, OrderFacts::UNKNOWN.same_group] {
        assert_eq!(raised("debooster", apart(9_000_000, group)), 0);
        let ours = raised("debooster-ancestor", apart(9_000_000, group));
        assert_eq!(ours, 7_000_000);
    }
}

#[test]
fn who_is_in_another_queue_is_not_compared() {
    for same_queue in [UNSPIN_NO, OrderFacts::UNKNOWN.same_queue] {
        for names in ["debooster", "debooster-ancestor"] {
            let order = OrderFacts {
                same_queue,
                ..apart(9_000_000, UNSPIN_YES)
            };
            assert_eq!(raised(names, order), 0, "{names}");
        }
    }
}

#[test]
fn a_loan_decides_before_the_debooster() {
    let mut facts = Facts {
        order: apart(9_000_000, UNSPIN_YES),
        ..facts()
    };
    let both = policies("loan,debooster");
    facts.candidate.critical = seen(1);
    let decision = both.on_yield(&facts, &mut Memory::default());
    assert_eq!(decision, Decision::Lend(UNSPIN_BUDGET_NS));
    facts.candidate.critical = UNKNOWN;
    let decision = both.on_yield(&facts, &mut Memory::default());
    assert!(matches!(
        decision,
        Decision::YieldBuddy {
            raise_ns: 7_000_000,
            ..
        }
    ));
}

#[test]
fn an_extra_schedule_once_a_slice_and_only_ours_gives_it_back() {
    for (names, extra, at_unlock) in [
        ("ecs", Decision::Extend(UNSPIN_BUDGET_NS), Decision::Pass),
        (
            "ecs-give-back",
            Decision::Grant(UNSPIN_BUDGET_NS),
            Decision::GiveBack,
        ),
    ] {
        let policies = policies(names);
        let mut memory = Memory::default();
        let mut facts = facts();
        facts.self_.critical = seen(2);
        let end = |facts: &Facts, memory: &mut Memory| policies.on_slice_end(facts, memory);
        assert_eq!(end(&facts, &mut memory), extra, "{names}");
        assert_eq!(
            policies.on_poll(&facts, &mut memory),
            Decision::Pass,
            "{names}"
        );
        assert_eq!(end(&facts, &mut memory), Decision::Pass, "twice in a row");
        policies.on_slice_start(&facts, &mut memory);
        assert_eq!(end(&facts, &mut memory), extra);
        facts.self_.critical = seen(0);
        assert_eq!(policies.on_poll(&facts, &mut memory), at_unlock, "{names}");
        policies.on_slice_start(&facts, &mut memory);
        for critical in [seen(0), UNKNOWN] {
            facts.self_.critical = critical;
            assert_eq!(end(&facts, &mut memory), Decision::Pass, "{names}");
        }
    }
}
