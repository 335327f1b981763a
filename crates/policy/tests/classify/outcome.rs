// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 28, over every combination of facts: the outcomes partition all exits, and an outcome is unknown exactly when
//! it depends on an unknown fact.

use unspin_policy::{Candidate, CandidateState, Outcome, OutcomeFacts, Where};

const STATES: [CandidateState; 5] = [
    CandidateState::Unknown,
    CandidateState::Running,
    CandidateState::Preempted,
    CandidateState::Woken,
    CandidateState::Halted,
];
const MODES: [Option<Where>; 3] = [None, Some(Where::User), Some(Where::Kernel)];
const FACTS: [Option<bool>; 3] = [None, Some(false), Some(true)];

/// The ruling's text, for known facts: candidate, boosted, passed, spinner first, halted, receiver.
fn ruling_28(facts: [bool; 6]) -> Outcome {
    let [candidate, boosted, passed, spinner_first, halted, receiver] = facts;
    if !candidate && !boosted {
        Outcome::NoCandidate
    } else if !boosted && passed {
        Outcome::LostOpportunity
    } else if !boosted {
        Outcome::LostOther
    } else if spinner_first {
        Outcome::Mismatch
    } else if halted && !receiver {
        Outcome::Overboost
    } else {
        Outcome::Success
    }
}

/// All values for the unknown facts.
fn completions(facts: [Option<bool>; 6]) -> Vec<[bool; 6]> {
    let all = (0..64u32).map(|bits| std::array::from_fn(|index| bits >> index & 1 == 1));
    all.filter(|filled: &[bool; 6]| {
        facts
            .iter()
            .zip(filled)
            .all(|(fact, filled)| fact.is_none_or(|fact| fact == *filled))
    })
    .collect()
}

/// A candidate that results in exactly these facts, if there is one.
fn candidate(candidate: Option<bool>, passed: Option<bool>) -> Option<Candidate> {
    let preempted = Candidate {
        state: CandidateState::Preempted,
        mode: Some(Where::User),
        receiver: passed,
        tried: Some(false),
    };
    let state = match (candidate, passed) {
        (Some(true), _) => return Some(preempted),
        (None, Some(false)) => CandidateState::Unknown,
        (Some(false), Some(false)) => CandidateState::Running,
        // A candidate that was passed over was descheduled: no other combination exists.
        _ => return None,
    };
    Some(Candidate { state, ..preempted })
}

#[test]
fn an_outcome_is_known_exactly_when_no_unknown_fact_decides() {
    let mut seen = [0u32; Outcome::ALL.len()];
    for number in 0..3usize.pow(6) {
        let facts: [Option<bool>; 6] =
            std::array::from_fn(|index| FACTS[number / 3usize.pow(index as u32) % 3]);
        let Some(other) = candidate(facts[0], facts[2]) else {
            continue;
        };
        let mut given = OutcomeFacts::default();
        given.add(other, Some(Where::Kernel));
        given.boosted(facts[1]);
        given.target(facts[3], facts[4], facts[5]);
        let mut possible: Vec<Outcome> = completions(facts).into_iter().map(ruling_28).collect();
        possible.sort();
        possible.dedup();
        let expected = match possible[..] {
            [only] => only,
            _ => Outcome::Unknown,
        };
        assert_eq!(given.outcome(), expected, "{facts:?}");
        seen[expected as usize] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn nobody_else_is_no_candidate() {
    let mut facts = OutcomeFacts::default();
    facts.boosted(Some(false));
    assert_eq!(facts.outcome(), Outcome::NoCandidate);
    facts.others_unknown();
    assert_eq!(facts.outcome(), Outcome::Unknown);
}

fn all_candidates() -> Vec<Candidate> {
    let mut all = Vec::new();
    for state in STATES {
        for mode in MODES {
            for receiver in FACTS {
                for tried in FACTS {
                    all.push(Candidate {
                        state,
                        mode,
                        receiver,
                        tried,
                    });
                }
            }
        }
    }
    all
}

/// kvm_vcpu_on_spin(): `ready` vCPUs are candidates; preempted ones in user mode are passed over when the spinner is in the
/// kernel.
#[test]
fn who_is_a_candidate_and_who_is_passed_over() {
    for candidate in all_candidates() {
        for spinner in MODES {
            let mut facts = OutcomeFacts::default();
            facts.add(candidate, spinner);
            facts.boosted(Some(false));
            let ready = match candidate.state {
                CandidateState::Unknown => None,
                CandidateState::Preempted | CandidateState::Woken => Some(true),
                CandidateState::Running | CandidateState::Halted => Some(false),
            };
            assert_eq!(facts.candidate(), ready, "{candidate:?}");
            let certainly_passed = candidate.state == CandidateState::Preempted
                && candidate.mode == Some(Where::User)
                && candidate.receiver == Some(true)
                && candidate.tried == Some(false)
                && spinner == Some(Where::Kernel);
            assert_eq!(
                facts.outcome() == Outcome::LostOpportunity,
                certainly_passed,
                "{candidate:?} {spinner:?}"
            );
            let certainly_not = candidate.mode == Some(Where::Kernel)
                || candidate.receiver == Some(false)
                || candidate.tried == Some(true)
                || spinner == Some(Where::User);
            if ready == Some(true) && certainly_not {
                assert_eq!(facts.outcome(), Outcome::LostOther, "{candidate:?}");
            }
        }
    }
}

#[test]
fn the_order_of_candidates_does_not_matter() {
    let all = all_candidates();
    for first in &all {
        for second in &all {
            let [one, other] = [[first, second], [second, first]].map(|pair| {
                let mut facts = OutcomeFacts::default();
                for candidate in pair {
                    facts.add(*candidate, Some(Where::Kernel));
                }
                facts
            });
            assert_eq!(one, other);
        }
    }
}

#[test]
fn halted_or_not() {
    for candidate in all_candidates() {
        let expected = match candidate.state {
            CandidateState::Unknown => None,
            CandidateState::Woken | CandidateState::Halted => Some(true),
            CandidateState::Running | CandidateState::Preempted => Some(false),
        };
        assert_eq!(candidate.is_halted(), expected);
    }
}
