// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long slices and loans last, which task pays for them, and which continues them.

use unspin_policy::{
    mechanics::{
        BorrowKind, slice_left_ns, slice_lender, slice_length_ns, slice_payer, slice_returns,
    },
    steering::Decision,
};

use super::MS;

#[test]
fn what_is_left_ends_at_zero_also_across_the_wrap() {
    for begin in [0, 5 * MS, u64::MAX - MS] {
        let end_ns = begin.wrapping_add(3 * MS);
        assert_eq!(slice_left_ns(end_ns, begin), 3 * MS);
        assert_eq!(slice_left_ns(end_ns, end_ns.wrapping_sub(1)), 1);
        assert_eq!(slice_left_ns(end_ns, end_ns), 0);
        assert_eq!(slice_left_ns(end_ns, end_ns.wrapping_add(MS)), 0);
    }
}

#[test]
fn a_loan_lasts_for_its_budget_or_to_the_end_of_the_slice() {
    use BorrowKind::{Grant, Loan, Nothing};
    for (left_ns, kind, budget_ns, length_ns) in [
        (3 * MS, Loan, MS as u32, MS),
        (MS / 2, Loan, MS as u32, MS / 2),
        (MS, Loan, MS as u32, MS),
        (3 * MS, Nothing, MS as u32, 3 * MS),
        (3 * MS, Nothing, 0, 3 * MS),
        // Used up: 1 ns, which in effect lasts until the next tick.
        (0, Loan, MS as u32, 1),
        (0, Nothing, 0, 1),
        (3 * MS, Grant, MS as u32, 3 * MS),
    ] {
        let length = slice_length_ns(left_ns, kind, budget_ns);
        assert_eq!(length, length_ns, "{left_ns} {kind:?} {budget_ns}");
    }
}

/// A slice that task 0 began, passed on to 1, to 2 and so on; `true`: by a loan.
fn chain(lends: &[bool]) -> (Option<u32>, Option<u32>) {
    let (mut payer, mut lender) = (None, None);
    for (task, lends) in (0u32..).zip(lends) {
        lender = slice_lender(lender, task, *lends);
        payer = Some(slice_payer(payer, task));
    }
    (payer, lender)
}

#[test]
fn who_began_a_slice_pays_however_often_it_is_passed_on() {
    for lends in [&[true][..], &[false], &[true, true], &[false, true, false]] {
        assert_eq!(chain(lends).0, Some(0), "{lends:?}");
    }
}

#[test]
fn the_first_lender_continues_unless_the_slice_is_passed_on_for_good() {
    assert_eq!(chain(&[true]).1, Some(0));
    assert_eq!(chain(&[true, true, true]).1, Some(0), "not who lends on");
    assert_eq!(chain(&[false]).1, None);
    assert_eq!(
        chain(&[true, false]).1,
        None,
        "for good: the lender, too, has given it away"
    );
    assert_eq!(
        chain(&[false, true]).1,
        Some(1),
        "who was given it lends it"
    );
    assert_eq!(chain(&[true, false, true, true]).1, Some(2));
}

#[test]
fn a_slice_that_is_used_up_does_not_return() {
    assert!(slice_returns(1));
    assert!(!slice_returns(0));
}

#[test]
fn a_grant_is_given_once_and_given_back() {
    use BorrowKind::{Grant, Loan, Nothing};
    assert!(Nothing.may_be_granted());
    assert!(!Loan.may_be_granted() && !Grant.may_be_granted());
    for passes_on in [Decision::Direct, Decision::Lend(7)] {
        assert_eq!(Grant.within_slice(passes_on), Decision::GiveBack);
        assert_eq!(Loan.within_slice(passes_on), passes_on);
        assert_eq!(Nothing.within_slice(passes_on), passes_on);
    }
    let buddy = Decision::YieldBuddy {
        threshold_ns: 1,
        raise_ns: 2,
        credit_ns: 3,
    };
    for other in [
        Decision::Pass,
        Decision::Refuse,
        Decision::Grant(5),
        Decision::Extend(6),
        Decision::GiveBack,
        buddy,
    ] {
        assert_eq!(
            Grant.within_slice(other),
            other,
            "nobody else gets the slice"
        );
    }
}
