// SPDX-License-Identifier: MIT OR Apache-2.0
//! User policies: created, tested, compiled natively, and replayed on logged decisions.

use std::{fs, path::Path};

use unspin_policy::{
    steering::{DecisionRecord, Fact, Policies, UNSPIN_AGE_UNKNOWN, look_again},
    user_policy::{UserPolicySource, UserPolicySourceError, check_name, write_new_policy},
};

fn written(name: &str) -> (tempfile::TempDir, UserPolicySource) {
    let folder = tempfile::tempdir().expect("a folder");
    let [policy, _] = write_new_policy(folder.path(), name).expect("a new policy");
    let source = UserPolicySource::at(&policy).expect("it is there");
    (folder, source)
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("it is there");
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replace(from, to)).expect("it is writable");
}

/// The number of the last line that contains the text.
fn line(path: &Path, what: &str) -> usize {
    let text = fs::read_to_string(path).expect("it is there");
    let lines = text.lines().count();
    let back = text.lines().rev().position(|line| line.contains(what));
    lines - back.expect("it is there")
}

#[test]
fn a_new_policy_passes_its_test_and_a_wrong_one_does_not() {
    let (folder, source) = written("mine");
    let tested = source.test().expect("it compiles");
    assert!(tested.passed && tested.output.is_empty(), "{tested:?}");
    change(
        &folder.path().join("mine.c"),
        "#define TWO 2",
        "#define TWO 2\n#define THREE 3",
    );
    change(&folder.path().join("mine.c"), "< TWO", "< THREE");
    let tested = source.test().expect("it compiles");
    assert!(!tested.passed, "{tested:?}");
    let test = folder.path().join("mine_test.c");
    let place = format!(
        "mine_test.c:{}: does not hold: ",
        line(&test, "UNSPIN_DIRECT")
    );
    assert!(tested.output.contains(&place), "{}", tested.output);
}

#[test]
fn nothing_is_overwritten() {
    for there in ["mine.c", "mine_test.c"] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(there), "kept").expect("it is writable");
        let error = write_new_policy(folder.path(), "mine").expect_err("it is there");
        assert!(error.to_string().contains(there), "{error}");
        let text = fs::read_to_string(folder.path().join(there)).expect("it is there");
        assert_eq!(text, "kept");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}

#[test]
fn names_are_those_of_c_functions_and_nobody_elses() {
    for name in ["mine", "a", "loans", "x_2", &"a".repeat(31)] {
        check_name(name).expect("a name");
    }
    let long = "a".repeat(32);
    for name in [
        "",
        "Mine",
        "2x",
        "_x",
        "a-b",
        "a.b",
        "../a",
        "a b",
        "ä",
        "loan",
        "loan_cpl",
        "refuse-yields",
        "user",
        "policies",
        &long,
    ] {
        let error = check_name(name).expect_err("no name");
        assert!(matches!(error, UserPolicySourceError::Name(_)), "{error}");
    }
}

#[test]
fn a_compilers_error_names_file_and_line_as_the_user_did() {
    let (folder, source) = written("mine");
    change(
        &folder.path().join("mine.c"),
        "state->words[0]++;",
        "state->wrods[0]++;",
    );
    let error = source.test().expect_err("it does not compile").to_string();
    let policy = folder.path().join("mine.c");
    let place = format!("{}:{}:", policy.display(), line(&policy, "wrods"));
    assert!(error.contains(&place) && error.contains("wrods"), "{error}");
    // A function that is missing.
    let (folder, source) = written("mine");
    change(
        &folder.path().join("mine.c"),
        "mine_on_poll",
        "mine_on_lock",
    );
    let error = source.test().expect_err("it does not compile").to_string();
    assert!(error.contains("mine_on_poll"), "{error}");
}

#[test]
fn what_is_not_there_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = UserPolicySource::at(&folder.path().join("mine.c")).expect_err("no file");
    assert!(
        matches!(error, UserPolicySourceError::File { .. }),
        "{error}"
    );
    let (folder, source) = written("mine");
    fs::remove_file(folder.path().join("mine_test.c")).expect("it was there");
    let error = source.test().expect_err("no test").to_string();
    assert!(error.contains("mine_test.c"), "{error}");
}

const SEEN: Fact = Fact {
    value: 1,
    age_ns: 7,
};

/// Decisions as the new policy makes them: the first request is refused, the third honoured.
fn records(source: &UserPolicySource) -> Vec<DecisionRecord> {
    let mut record = DecisionRecord {
        event: 1,
        policies: Policies::REFUSE_YIELDS.with_user_policy().bits(),
        ..DecisionRecord::default()
    };
    record.facts.candidate.descheduled = SEEN;
    record.facts.candidate.yielded.age_ns = UNSPIN_AGE_UNKNOWN;
    record.after.user.words[0] = 1;
    record.decision.action = 1;
    let mut third = record;
    third.before.user.words[0] = 2;
    third.after.user.words[0] = 2;
    third.decision.action = 2;
    assert_eq!(source.name(), "mine");
    vec![record, third]
}

#[test]
fn its_decisions_are_taken_again_with_it() {
    let (_folder, source) = written("mine");
    let good = records(&source);
    assert!(good.iter().all(DecisionRecord::asked_own));
    // Without memory, requests would not be counted.
    assert!(!good[0].replays());
    assert_eq!(source.replay(&good).expect("it compiles"), [true, true]);
    assert_eq!(source.replay(&[]).expect("it compiles"), []);
    for spoil in [
        |record: &mut DecisionRecord| record.decision.action = 3,
        |record: &mut DecisionRecord| record.decision.budget_ns = 1,
        |record: &mut DecisionRecord| record.after.user.words[1] = 1,
        |record: &mut DecisionRecord| record.after.of[0].words[0] = 1,
    ] {
        let mut bad = good.clone();
        spoil(&mut bad[1]);
        assert_eq!(source.replay(&bad).expect("it compiles"), [true, false]);
    }
    // More than a pipe's buffer.
    let many: Vec<_> = good.iter().copied().cycle().take(20_000).collect();
    let same = source.replay(&many).expect("it compiles");
    assert_eq!((same.len(), same.contains(&false)), (20_000, false));
}

#[test]
fn one_that_passes_leaves_the_rest_to_the_others() {
    let (folder, source) = written("mine");
    change(
        &folder.path().join("mine.c"),
        "UNSPIN_REFUSE, 0",
        "UNSPIN_PASS, 0",
    );
    let loan: Policies = "loan".parse().expect("a policy");
    let mut record = DecisionRecord {
        event: 1,
        policies: loan.with_user_policy().bits(),
        ..DecisionRecord::default()
    };
    // Loan refuses a candidate that neither waits nor holds; the user policy would honour it.
    record.facts.candidate.descheduled = SEEN;
    record.facts.candidate.yielded = Fact {
        value: 1,
        age_ns: 1,
    };
    record.facts.candidate.critical = Fact {
        value: 0,
        age_ns: 1,
    };
    record.decision.action = 1;
    assert_eq!(source.replay(&[record]).expect("it compiles"), [true]);
    record.facts.candidate.yielded.age_ns = UNSPIN_AGE_UNKNOWN;
    record.decision.action = 2;
    record.before.user.words[0] = 2;
    record.after.user.words[0] = 2;
    assert_eq!(source.replay(&[record]).expect("it compiles"), [true]);
}

#[test]
fn a_file_that_has_changed_is_another_policy_once_somebody_looks_again() {
    let (folder, source) = written("edited");
    let load = || source.load().expect("it loads");
    let first = load();
    let path = folder.path().join("edited.c");
    let text = fs::read_to_string(&path).expect("it is there");
    fs::write(&path, format!("{text}\n/* edited */\n")).expect("written");
    assert_eq!(load(), first);
    look_again();
    let second = load();
    assert_ne!(second, first);
    assert_eq!(load(), second);
    // What was loaded once is there.
    fs::write(&path, text).expect("written");
    look_again();
    assert_eq!(load(), first);
}
