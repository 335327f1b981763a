// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 31 over all facts: the kernels' rules against the conditions in their loops, and the variants against the
//! kernels' rules.

use proptest::prelude::*;
use unspin_policy::{
    CandidateRule, CandidateState, Spinner, Vector, Verdict, Where, YieldFacts, verdict,
};

const KERNEL: Option<Where> = Some(Where::Kernel);
const USER: Option<Where> = Some(Where::User);

fn takes(rule: CandidateRule, candidate: YieldFacts) -> bool {
    verdict(&Spinner::new(rule, KERNEL), &candidate).take
}

/// The conditions in the kernel's loop, in its order.
fn kernel_says(rule: CandidateRule, spinner: Option<Where>, facts: &YieldFacts) -> bool {
    let preempted = facts.state == CandidateState::Preempted;
    let ready = preempted || facts.state == CandidateState::Woken;
    let blocking = matches!(facts.state, CandidateState::Woken | CandidateState::Halted);
    let yield_to_kernel_mode = spinner == KERNEL;
    let in_kernel = facts.mode != USER;
    let posted = facts.posted == Some(true) && rule == CandidateRule::Kvm7_2;
    let eligible = !facts.spins || facts.eligible;
    if rule == CandidateRule::Kvm5_2 && !preempted || !ready {
        return false;
    }
    if blocking && facts.pending == Some(false) {
        return false;
    }
    if preempted && yield_to_kernel_mode && !posted && !in_kernel {
        return false;
    }
    eligible
}

fn facts() -> impl Strategy<Value = YieldFacts> {
    let states = prop::sample::select(vec![
        CandidateState::Unknown,
        CandidateState::Running,
        CandidateState::Preempted,
        CandidateState::Woken,
        CandidateState::Halted,
    ]);
    let modes = prop::sample::select(vec![None, USER, KERNEL]);
    let known = || prop::sample::select(vec![None, Some(false), Some(true)]);
    let marks = (any::<bool>(), any::<bool>(), any::<bool>());
    (
        states,
        modes,
        known(),
        known(),
        known(),
        marks,
        any::<Option<u32>>(),
    )
        .prop_map(
            |(state, mode, pending, posted, receiver, (spins, eligible, passed), ipi_age_ns)| {
                YieldFacts {
                    state,
                    mode,
                    pending,
                    posted,
                    spins,
                    eligible,
                    receiver,
                    vector: Vector::NotKnown,
                    passed,
                    ipi_age_ns,
                }
            },
        )
}

proptest! {
    #[test]
    fn as_the_kernels_say(facts in facts(), kernel in any::<bool>()) {
        let mode = if kernel { KERNEL } else { USER };
        for rule in [CandidateRule::Kvm5_2, CandidateRule::Kvm5_3, CandidateRule::Kvm7_2] {
            let verdict = verdict(&Spinner::new(rule, mode), &facts);
            prop_assert_eq!(verdict.take, kernel_says(rule, mode, &facts), "{}", rule.name());
        }
    }

    /// Strict boost and usermode only add to the preempted vCPUs, avoid-overboost only removes some; no rule takes one
    /// that runs.
    #[test]
    fn variants_add_and_leave_out(facts in facts()) {
        let take = |rule| takes(rule, facts);
        let base = take(CandidateRule::Kvm5_3);
        prop_assert!(!take(CandidateRule::AvoidOverboost) || base);
        prop_assert!(take(CandidateRule::Usermode) || !base);
        if facts.state == CandidateState::Preempted {
            prop_assert!(take(CandidateRule::Strict) || !base);
            prop_assert!(take(CandidateRule::Usermode) || !take(CandidateRule::Strict));
        }
        for rule in CandidateRule::ALL {
            let verdict = verdict(&Spinner::new(rule, KERNEL), &facts);
            prop_assert!(!verdict.mark || (rule == CandidateRule::Strict && !facts.passed && !verdict.take));
            prop_assert!(!verdict.toggle || facts.spins);
            let off = matches!(facts.state, CandidateState::Preempted | CandidateState::Woken);
            prop_assert!(off || verdict == Verdict::default());
        }
    }
}
