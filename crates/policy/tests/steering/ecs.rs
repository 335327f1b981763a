// SPDX-License-Identifier: MIT OR Apache-2.0
//! eCS's extra schedule among the steering policies (ruling 22): which counters count, and which guests are notified.

use crate::common::{UNKNOWN, facts, seen};
use unspin_policy::steering::{Decision, Fact, Memory, Policies, UNSPIN_BUDGET_NS};

const EXTENDED: Decision = Decision::Extend(UNSPIN_BUDGET_NS);
const GRANTED: Decision = Decision::Grant(UNSPIN_BUDGET_NS);

/// The decision at the end of a slice for a vCPU with these counters: eCS's sums, and the loan's.
fn at_the_end(names: &str, sections: Fact, critical: Fact) -> Decision {
    let mut facts = facts();
    facts.self_.sections = sections;
    facts.self_.critical = critical;
    policies(names).on_slice_end(&facts, &mut Memory::default())
}

fn policies(names: &str) -> Policies {
    names.parse().expect("policies' names")
}

#[test]
fn the_paper_tells_nobody_and_give_back_does() {
    assert_eq!(at_the_end("ecs", seen(1), UNKNOWN), EXTENDED);
    assert_eq!(at_the_end("ecs-give-back", seen(1), UNKNOWN), GRANTED);
    for policy in ["ecs", "ecs-give-back"] {
        assert_eq!(at_the_end(policy, seen(0), UNKNOWN), Decision::Pass);
        assert_eq!(at_the_end(policy, UNKNOWN, UNKNOWN), Decision::Pass);
    }
    assert_eq!(
        at_the_end("refuse-yields", seen(1), seen(1)),
        Decision::Pass,
        "only who is on"
    );
}

/// A lock waiter raises the loan's counter and none of eCS's: if the guest has eCS's counters, only they count.
#[test]
fn the_papers_counters_come_first() {
    assert_eq!(at_the_end("ecs", seen(0), seen(1)), Decision::Pass);
    assert_eq!(at_the_end("ecs", seen(1), seen(0)), EXTENDED);
    assert_eq!(at_the_end("ecs", UNKNOWN, seen(1)), EXTENDED);
    assert_eq!(at_the_end("ecs", UNKNOWN, seen(0)), Decision::Pass);
}

#[test]
fn once_a_slice() {
    for (policy, answer) in [("ecs", EXTENDED), ("ecs-give-back", GRANTED)] {
        let mut memory = Memory::default();
        let mut facts = facts();
        facts.self_.sections = seen(3);
        for _ in 0..2 {
            let ends = [(); 3].map(|()| policies(policy).on_slice_end(&facts, &mut memory));
            assert_eq!(ends, [answer, Decision::Pass, Decision::Pass]);
            policies(policy).on_slice_start(&facts, &mut memory);
        }
    }
}

/// With give-back it leaves when all sections are over; the paper's form has no opinion.
#[test]
fn looked_at() {
    let look = |names: &str, sections, critical| {
        let mut facts = facts();
        facts.self_.borrows = seen(1);
        facts.self_.sections = sections;
        facts.self_.critical = critical;
        policies(names).on_poll(&facts, &mut Memory::default())
    };
    assert_eq!(look("ecs", seen(0), seen(0)), Decision::Pass);
    assert_eq!(look("ecs-give-back", seen(1), seen(0)), Decision::Pass);
    assert_eq!(look("ecs-give-back", seen(0), seen(1)), Decision::GiveBack);
    assert_eq!(look("ecs-give-back", UNKNOWN, seen(0)), Decision::GiveBack);
    assert_eq!(look("ecs-give-back", UNKNOWN, UNKNOWN), Decision::Pass);
}
