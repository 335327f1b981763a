// SPDX-License-Identifier: MIT OR Apache-2.0
//! policy/classify/guest_audit.h: which guests are named, and which are not.

use unspin_policy::GuestAudit;

/// A guest of four vCPUs that contends for one lock: always critical, and no longer critical soon after it is let run.
const HONEST: GuestAudit = GuestAudit {
    boundaries: 10_000,
    claimed: 10_000,
    borrowed: 5_000,
    overrun: 2_500,
    page_failures: 3,
    bad_addresses: 0,
    idle_calls: 4_000,
    sent: 1_000_000,
    unanswered: 10_000,
    ran_ns: 10_000_000_000,
};

fn named(change: impl FnOnce(&mut GuestAudit)) -> String {
    let mut guest_audit = HONEST;
    change(&mut guest_audit);
    guest_audit.says().join("; ")
}

#[test]
fn an_honest_guest_is_not_named() {
    assert_eq!(named(|_| ()), "");
    assert_eq!(GuestAudit::default().says(), Vec::<String>::new());
}

#[test]
fn who_never_ends_a_section_is_named_with_its_numbers() {
    let said = named(|guest_audit| guest_audit.overrun = 4_999);
    assert!(
        said.contains("10000 of 10000 slice ends") && said.contains("4999 of 5000 loans"),
        "{said}"
    );
    // Neither for a part of them, nor before there are enough.
    assert_eq!(named(|guest_audit| guest_audit.overrun = 4_700), "");
    assert_eq!(
        named(|guest_audit| (guest_audit.overrun, guest_audit.claimed) = (5_000, 9_000)),
        ""
    );
    assert_eq!(
        named(|guest_audit| (
            guest_audit.borrowed,
            guest_audit.overrun,
            guest_audit.idle_calls
        ) = (15, 15, 0)),
        ""
    );
    assert_ne!(
        named(|guest_audit| (
            guest_audit.borrowed,
            guest_audit.overrun,
            guest_audit.idle_calls
        ) = (16, 16, 0)),
        ""
    );
    assert_eq!(
        named(|guest_audit| (
            guest_audit.boundaries,
            guest_audit.claimed,
            guest_audit.overrun
        ) = (63, 63, 5_000)),
        ""
    );
}

#[test]
fn a_page_that_has_gone_and_garbage_are_named() {
    assert_eq!(named(|guest_audit| guest_audit.page_failures = 63), "");
    assert!(named(|guest_audit| guest_audit.page_failures = 64).contains("no magic, 64 times"));
    assert_eq!(named(|guest_audit| guest_audit.bad_addresses = 63), "");
    assert!(
        named(|guest_audit| guest_audit.bad_addresses = 64)
            .contains("no page of its memory 64 times")
    );
}

#[test]
fn giving_back_what_one_never_had_is_named() {
    assert!(named(|guest_audit| guest_audit.idle_calls = 40_001).contains("40001 times"));
    assert_eq!(named(|guest_audit| guest_audit.idle_calls = 40_000), "");
    let nothing = |calls| GuestAudit {
        idle_calls: calls,
        ..GuestAudit::default()
    };
    assert_eq!(nothing(63).says().len(), 0);
    assert_eq!(nothing(64).says().len(), 1);
}

/// Judged not by how many requests it sends, but by how many it sends before the previous one was answered.
#[test]
fn who_floods_its_own_vcpus_is_named() {
    let said = |unanswered, ran_ns| {
        let guest_audit = GuestAudit {
            sent: 1_000_000,
            unanswered,
            ran_ns,
            ..GuestAudit::default()
        };
        guest_audit.says().join("; ")
    };
    let flood = said(500_000, 20_000_000_000);
    assert!(
        flood.contains("1000000 interrupts") && flood.contains("500000 times, every 40000 ns"),
        "{flood}"
    );
    assert_eq!(said(0, 20_000_000_000), "");
    assert_eq!(said(0, 0), "");
    const EVERY_NS: u64 = 200_000;
    assert_eq!(said(1_000, 1_000 * EVERY_NS), "");
    assert_ne!(said(1_000, 1_000 * EVERY_NS - 1), "");
    assert_eq!(said(999, 0), "");
    // However great the sums are.
    assert_ne!(said(u64::MAX, u64::MAX), "");
}
