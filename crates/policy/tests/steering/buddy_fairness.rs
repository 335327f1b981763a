// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a directed yield as a yield buddy is followed, and what the debooster adds.

use crate::common::{facts, seen};
use unspin_policy::steering::{
    Decision, Facts, Memory, Policies, UNSPIN_NO, UNSPIN_YES, yield_buddy_is_followed,
};

/// The decision when the candidate is so far ahead of a spinner of its queue, in the spinner's cgroup or not.
fn ahead(names: &str, ahead_ns: u64, same_group: u32) -> Decision {
    let policies: Policies = names.parse().expect("policies' names");
    let mut facts: Facts = facts();
    facts.threshold_ns = policies.threshold_ns();
    // Virtual times wrap around.
    facts.order.self_vtime = 500_000u64.wrapping_neg();
    facts.order.candidate_vtime = facts.order.self_vtime.wrapping_add(ahead_ns);
    facts.order.same_queue = UNSPIN_YES;
    facts.order.same_group = same_group;
    policies.on_yield(&facts, &mut Memory::default())
}

fn raised(decision: Decision) -> u32 {
    let Decision::YieldBuddy {
        raise_ns,
        credit_ns: 0,
        ..
    } = decision
    else {
        panic!("{decision:?}");
    };
    raise_ns
}

#[test]
fn up_to_the_threshold_and_from_before_the_first() {
    for (candidate, first, followed) in [
        (10, 10, true),
        (1_000, 0, true),
        (1_001, 0, false),
        (0, 1_000_000, true),
        (u64::MAX, 500, true),
        (500, u64::MAX, true),
        (1_000, u64::MAX, false),
    ] {
        assert_eq!(
            yield_buddy_is_followed(candidate, first, 1_000),
            followed,
            "{candidate}, {first}"
        );
    }
    assert!(yield_buddy_is_followed(5, 5, 0) && !yield_buddy_is_followed(6, 5, 0));
}

#[test]
fn the_debooster_takes_a_spinner_to_the_threshold_and_no_further() {
    for policy in ["debooster=1ms", "debooster-ancestor=1ms"] {
        assert_eq!(raised(ahead(policy, 1_000_000, UNSPIN_YES)), 0);
        assert_eq!(raised(ahead(policy, 1_000_001, UNSPIN_YES)), 1);
        assert_eq!(raised(ahead(policy, 4_000_000, UNSPIN_YES)), 3_000_000);
        // The candidate is behind: it is not lowered.
        assert_eq!(raised(ahead(policy, 1u64.wrapping_neg(), UNSPIN_YES)), 0);
    }
    assert_eq!(raised(ahead("debooster=1ms", 4_000_000, UNSPIN_NO)), 0);
    let ancestor = ahead("debooster-ancestor=1ms", 4_000_000, UNSPIN_NO);
    assert_eq!(raised(ancestor), 3_000_000);
    assert_eq!(raised(ahead("yield-buddy=1ms", 4_000_000, UNSPIN_YES)), 0);
}

#[test]
fn a_running_vcpu_is_no_yield_buddy() {
    for name in ["yield-buddy", "debooster", "debooster-ancestor"] {
        let mut facts = facts();
        facts.candidate.descheduled = seen(0);
        let policies: Policies = name.parse().expect("a policy");
        let answer = policies.on_yield(&facts, &mut Memory::default());
        assert_eq!(answer, Decision::Refuse, "{name}");
    }
}
