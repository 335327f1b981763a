// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which vCPU a guest's call for help lets run, and policies with a time.

use crate::common::{UNKNOWN, facts, seen};
use unspin_policy::steering::{
    Decision, Fact, Facts, Memory, Policies, UNSPIN_AGE_MAX, UNSPIN_AGE_UNKNOWN, UNSPIN_BUDGET_NS,
    UNSPIN_FACT_KERNEL, UNSPIN_FACT_USER,
};

fn policies(names: &str) -> Policies {
    names.parse().expect("policies' names")
}

/// The decision on a call for help when the facts are changed like this.
fn to_help(names: &str, change: impl FnOnce(&mut Facts)) -> (Decision, u32) {
    let mut facts = facts();
    facts.candidate.mode = seen(UNSPIN_FACT_KERNEL);
    facts.candidate.near = seen(0);
    change(&mut facts);
    policies(names).on_help(&facts, &mut Memory::default())
}

fn rank(change: impl FnOnce(&mut Facts)) -> u32 {
    let (decision, rank) = to_help("helping", change);
    assert_eq!(decision, Decision::Direct);
    assert!(rank > 0);
    rank
}

fn aged(value: u32, age_ns: u32) -> Fact {
    Fact { value, age_ns }
}

#[test]
fn good_before_neutral_before_bad() {
    let good = rank(|_| ());
    let user = rank(|facts| facts.candidate.mode = seen(UNSPIN_FACT_USER));
    let mode_unknown = rank(|facts| facts.candidate.mode = UNKNOWN);
    let bad = rank(|facts| facts.candidate.yielded = aged(1, 999_999));
    assert!(good > user && user > bad);
    assert_eq!(user, mode_unknown);
    // The mode of a candidate that yielded recently does not matter.
    let bad_in_user = rank(|facts| {
        facts.candidate.yielded = aged(1, 0);
        facts.candidate.mode = seen(UNSPIN_FACT_USER);
    });
    assert_eq!(bad, bad_in_user);
    // However long it waits, it does not move to the next class.
    let oldest = aged(1, UNSPIN_AGE_MAX);
    let patient = |mode| {
        move |facts: &mut Facts| {
            facts.candidate.mode = seen(mode);
            facts.candidate.descheduled = oldest;
            facts.candidate.near = seen(1);
        }
    };
    assert!(rank(patient(UNSPIN_FACT_USER)) < good);
    let patient_and_bad = rank(|facts| {
        facts.candidate.descheduled = oldest;
        facts.candidate.near = seen(1);
        facts.candidate.yielded = aged(1, 0);
    });
    assert!(patient_and_bad < user);
}

#[test]
fn recently_is_a_parameter() {
    let at = |age_ns, recent_ns| {
        rank(move |facts| {
            facts.candidate.yielded = aged(1, age_ns);
            facts.recent_ns = recent_ns;
        })
    };
    let (good, bad) = (at(2_000, 2_000), at(1_999, 2_000));
    assert!(good > bad);
    assert_eq!(at(0, 0), good, "with 0 nobody is bad");
    assert_eq!(at(UNSPIN_AGE_MAX, 1_000_000_000), good);
    let never = rank(|facts| facts.candidate.yielded = UNKNOWN);
    assert_eq!(never, good);
}

#[test]
fn the_longest_off_its_cpu_first_and_then_the_near_one() {
    let off = |age_ns, near| {
        rank(move |facts| {
            facts.candidate.descheduled = aged(1, age_ns);
            facts.candidate.near = near;
        })
    };
    assert!(off(2_000, seen(0)) > off(1_000, seen(1)));
    assert!(off(2_000, seen(1)) > off(2_999, seen(0)));
    assert_eq!(off(2_000, UNKNOWN), off(2_000, seen(0)));
}

#[test]
fn nobody_is_helped_who_runs_or_of_whom_nobody_knows() {
    let refused = (Decision::Refuse, 0);
    for state in [seen(0), UNKNOWN, aged(1, UNSPIN_AGE_UNKNOWN)] {
        let answer = to_help("helping", |facts| facts.candidate.descheduled = state);
        assert_eq!(answer, refused, "{state:?}");
    }
    // And by no other policy's decision.
    for others in [
        "refuse-yields",
        "loan",
        "loan,loan-cpl,kernel-exit,directed-yield",
    ] {
        assert_eq!(to_help(others, |_| ()), refused, "{others}");
    }
}

#[test]
fn with_loan_who_gives_pv_pages_is_lent_to() {
    let critical = |locks| move |facts: &mut Facts| facts.candidate.critical = seen(locks);
    let alone = to_help("helping", critical(0));
    assert_eq!(alone.0, Decision::Direct, "pv pages are no affair of its");
    assert_eq!(to_help("loan,helping", critical(0)), (Decision::Refuse, 0));
    let lent = Decision::Lend(UNSPIN_BUDGET_NS);
    assert_eq!(to_help("loan,helping", critical(1)), (lent, alone.1));
    // Without pv pages the same as without loan.
    assert_eq!(to_help("loan,helping", |_| ()), to_help("helping", |_| ()));
}

#[test]
fn with_loan_cpl_who_is_in_the_kernel_is_lent_to() {
    let lent = Decision::Lend(UNSPIN_BUDGET_NS);
    let rank = to_help("helping", |_| ()).1;
    assert_eq!(to_help("loan-cpl,helping", |_| ()), (lent, rank));
    let user = |facts: &mut Facts| facts.candidate.mode = seen(UNSPIN_FACT_USER);
    assert_eq!(to_help("loan-cpl,helping", user), to_help("helping", user));
    // What the guest publishes is used first.
    let silent = |facts: &mut Facts| facts.candidate.critical = seen(0);
    let answer = to_help("loan,loan-cpl,helping", silent);
    assert_eq!(answer, (Decision::Refuse, 0));
}

#[test]
fn kvm_is_answered_as_if_helping_were_not_there() {
    let mut facts = facts();
    let answer = policies("helping").on_yield(&facts, &mut Memory::default());
    assert_eq!(answer, Decision::Direct);
    facts.candidate.descheduled = seen(0);
    let answer = policies("helping").on_yield(&facts, &mut Memory::default());
    assert_eq!(answer, Decision::Refuse);
}

/// Under a policy that lends, slices are longer; a slice that was requested is kept.
#[test]
fn a_slice_is_the_kernels_longer_under_a_policy_that_lends_or_as_asked() {
    let kernel_ns = 1_400_000;
    for (names, length_ns) in [
        ("refuse-yields", kernel_ns),
        ("kernel-exit,candidates=strict", kernel_ns),
        ("loan", 4_000_000),
        ("loan-cpl,kernel-exit", 4_000_000),
        ("loan,slice=500us", 500_000),
        ("slice=8ms,gang", 8_000_000),
    ] {
        let length = policies(names).length_of_slice_ns(kernel_ns, true);
        assert_eq!(length, length_ns, "{names}");
    }
    let loan = policies("loan");
    assert_eq!(loan.length_of_slice_ns(6_000_000, true), 6_000_000);
    assert_eq!(loan.length_of_slice_ns(kernel_ns, false), kernel_ns);
}

#[test]
fn times_are_read_and_printed() {
    for (text, slice_ns, recent_ns) in [
        ("slice=500us", 500_000, None),
        ("slice=100us", 100_000, None),
        ("slice=100ms", 100_000_000, None),
        ("slice=1500001ns", 1_500_001, None),
        ("helping=0ms", 0, Some(0)),
        ("loan,helping=2ms,slice=8ms", 8_000_000, Some(2_000_000)),
    ] {
        let read = policies(text);
        assert_eq!(read.slice_ns(), slice_ns, "{text}");
        let recent_ns = recent_ns.unwrap_or(Policies::REFUSE_YIELDS.recent_ns());
        assert_eq!(read.recent_ns(), recent_ns, "{text}");
        assert_eq!(read.to_string(), text);
    }
    for (text, threshold_ns) in [
        ("yield-buddy=0ms", 0),
        ("debooster=500us", 500_000),
        ("loan,debooster-ancestor=1000ms", 1_000_000_000),
        ("debooster", 2_000_000),
    ] {
        assert_eq!(policies(text).threshold_ns(), threshold_ns, "{text}");
        assert_eq!(policies(text).to_string(), text);
    }
    assert_eq!(policies("slice=1.5ms").to_string(), "slice=1500us");
    // A slice alone decides nothing: yields are refused, which is what other policies are compared with.
    assert_eq!(policies("slice=1ms").bits(), 0);
}

#[test]
fn times_that_cannot_be_are_refused() {
    for (text, says) in [
        ("slice", "as in slice=500us"),
        ("slice=", "100us to 100ms"),
        ("slice=99999ns", "100us to 100ms"),
        ("slice=100.1ms", "100us to 100ms"),
        ("slice=500", "100us to 100ms"),
        ("slice=-1ms", "100us to 100ms"),
        ("slice=1e3us", "100us to 100ms"),
        ("slice=.5ms", "100us to 100ms"),
        ("slice=200.0000001us", "100us to 100ms"),
        ("slice=99999999999999999999ms", "100us to 100ms"),
        ("helping=2s", "0ms to 1000ms"),
        ("loan=1ms", "only slice, helping"),
        ("slyce=1ms", "only slice, helping"),
        ("yield-buddy=1001ms", "0ms to 1000ms"),
        ("debooster=", "0ms to 1000ms"),
    ] {
        let error = text.parse::<Policies>().expect_err(text);
        assert!(
            error.contains(says) && error.contains('`'),
            "{text}: {error}"
        );
    }
}
