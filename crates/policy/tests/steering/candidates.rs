// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of candidates among the policies, and their verdicts in the log.

use crate::common::facts;
use unspin_policy::{
    CandidateRule,
    steering::{Decision, DecisionRecord, Memory, Policies, UNSPIN_NO, UNSPIN_ON_SPIN, UNSPIN_YES},
};

fn policies(names: &str) -> Policies {
    names.parse().expect("policies' names")
}

#[test]
fn every_rule_is_read_and_printed() {
    for rule in CandidateRule::ALL {
        let word = format!("candidates={}", rule.name());
        let read = policies(&word);
        assert_eq!(read.candidates(), Some(rule));
        assert_eq!(read.bits().count_ones(), 1);
        assert_eq!((read.to_string(), read.candidate_options()), (word, 0));
    }
    for (text, printed) in [
        ("strict", "candidates=strict"),
        ("usermode,loan", "loan,candidates=usermode"),
        ("avoid-overboost", "candidates=avoid-overboost"),
        (
            "slice=1ms,ignore-vectors,strict",
            "candidates=strict,ignore-vectors,slice=1ms",
        ),
        ("strict,usermode", "candidates=usermode"),
        ("spin-samples,loan", "loan,spin-samples"),
        (
            "slice=1ms,spin-samples,strict",
            "candidates=strict,spin-samples,slice=1ms",
        ),
    ] {
        assert_eq!(policies(text).to_string(), printed, "{text}");
        assert_eq!(policies(printed), policies(text));
    }
    assert!(policies("strict,ignore-vectors").ignores_vectors());
    assert_eq!(policies("loan").candidates(), None);
    assert!(!policies("loan").need_candidates());
    assert_eq!(policies("loan,spin-samples").candidates(), None);
    assert!(policies("loan,spin-samples").need_candidates());
    for word in Policies::candidate_names().filter(|word| word != "ignore-vectors") {
        assert_eq!(policies(&word).to_string(), word);
    }
}

#[test]
fn rules_that_cannot_be_are_refused() {
    for (text, says) in [
        ("candidates", "one of kvm-5.2, "),
        ("candidates=", "one of kvm-5.2, "),
        ("candidates=lenient", "one of kvm-5.2, "),
        ("candidates=Strict", "one of kvm-5.2, "),
        ("kvm-7.2", "there is no policy `kvm-7.2`"),
        ("strict=1ms", "only slice"),
        ("spin-samples=1ms", "only slice"),
        ("ignore-vectors", "strict,ignore-vectors"),
        ("loan,ignore-vectors", "strict,ignore-vectors"),
    ] {
        let error = text.parse::<Policies>().expect_err(text);
        assert!(error.contains(says), "{text}: {error}");
    }
}

/// A candidate that a rule takes runs on the spinner's slice, as if KVM had named it, unless another policy decides
/// otherwise.
#[test]
fn a_rule_alone_is_no_other_answer() {
    let answer = |names| policies(names).on_yield(&facts(), &mut Memory::default());
    assert_eq!(answer("strict"), Decision::Direct);
    assert_eq!(answer("loan,strict"), answer("loan"));
    assert_eq!(answer("yield-buddy,strict"), answer("yield-buddy"));
}

#[test]
fn a_verdict_follows_from_what_was_seen() {
    let mut record = DecisionRecord {
        event: UNSPIN_ON_SPIN,
        policies: policies("strict").bits(),
        facts: facts(),
        ..DecisionRecord::default()
    };
    // A receiver that was preempted in user mode, and a spinner in kernel mode.
    record.spinner.rule = CandidateRule::Strict.number();
    record.spinner.mode = 2; // UNSPIN_MODE_KERNEL
    record.seen.state = 2; // UNSPIN_CANDIDATE_PREEMPTED
    record.seen.mode = 1; // UNSPIN_MODE_USER
    record.seen.receiver = UNSPIN_YES;
    record.verdict = 1; // UNSPIN_CANDIDATE_TAKE
    assert!(record.replays());
    for change in [
        |record: &mut DecisionRecord| record.verdict = 0,
        |record: &mut DecisionRecord| record.verdict |= 2,
        |record: &mut DecisionRecord| record.spinner.rule = CandidateRule::Kvm5_3.number(),
        |record: &mut DecisionRecord| record.seen.state = 1,
        |record: &mut DecisionRecord| record.seen.receiver = UNSPIN_NO,
        |record: &mut DecisionRecord| record.event = 1,
    ] {
        let mut changed = record;
        change(&mut changed);
        assert!(!changed.replays(), "{changed:?}");
    }
}
