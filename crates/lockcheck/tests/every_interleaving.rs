// SPDX-License-Identifier: MIT OR Apache-2.0
//! All interleavings of small programs, for every lock: mutual exclusion holds and every run ends.
//! Then the orders of entry that each lock allows (VEE'13 section 4.2, ruling 12).

mod common;

use std::collections::BTreeSet;

use common::{HEAD, TAIL, TAU, kind};
use unspin_abi::LockKind;
use unspin_lockcheck::{
    explore::{Exploration, Findings, Until},
    script::FOREVER,
};

/// Small programs that together combine all calls of a lock.
const PROGRAMS: [&[&str]; 8] = [
    &["L", "L"],
    &["LL", "LL"],
    &["L", "L", "L"],
    &["T", "T"],
    &["TL", "LT"],
    &["T", "T", "L"],
    &["T", "L", "L"],
    &["L", "T", "Q"],
];

fn explore(name: &str, programs: &[&str], words: &[(usize, u32)]) -> Findings {
    let mut exploration = Exploration::new(kind(name), programs);
    exploration.words = words;
    exploration.keeps_orders = true;
    exploration.run()
}

#[test]
fn every_lock_excludes_and_every_run_ends() {
    for lock in LockKind::all() {
        for programs in PROGRAMS {
            if programs.len() > 2 && (lock.blocks() || lock.parks()) {
                continue; // too many states without reduction
            }
            let findings = Exploration::new(lock, programs).run();
            println!("{} {programs:?}: {} states", lock.name(), findings.states);
            findings.assert_sound();
            assert!(findings.states > 20, "{programs:?} must interleave");
        }
    }
}

#[test]
fn trylock_takes_a_free_lock_and_no_other() {
    for lock in LockKind::all() {
        let alone = Exploration::new(lock, &["T"]).run();
        assert_eq!(alone.try_answers, BTreeSet::from([true]), "{}", lock.name());

        let mut held = Exploration::new(lock, &["L", "T"]);
        held.before = &[(0, Until::Inside), (1, Until::Refused)];
        let held = held.run();
        held.assert_sound();
        assert_eq!(held.try_answers, BTreeSet::from([false]), "{}", lock.name());

        let twice = Exploration::new(lock, &["TT", "TT"]).run();
        twice.assert_sound();
        assert_eq!(twice.try_answers.len(), 2, "{}", lock.name());
    }
}

#[test]
fn is_locked_sees_a_held_lock_and_a_free_one() {
    for lock in LockKind::all() {
        let free = Exploration::new(lock, &["Q"]).run();
        assert_eq!(
            free.is_locked_answers,
            BTreeSet::from([false]),
            "{}",
            lock.name()
        );

        let mut held = Exploration::new(lock, &["L", "Q"]);
        held.before = &[(0, Until::Inside), (1, Until::Answered)];
        let held = held.run();
        assert_eq!(
            held.is_locked_answers,
            BTreeSet::from([true]),
            "{}",
            lock.name()
        );

        let after = Exploration::new(lock, &["LQ"]).run();
        assert_eq!(
            after.is_locked_answers,
            BTreeSet::from([false]),
            "{}",
            lock.name()
        );
    }
}

#[test]
fn tickets_wrap_around_at_two_to_the_32() {
    for name in ["ticket", "preemptable_ticket"] {
        for programs in PROGRAMS {
            let from_zero = explore(name, programs, &[]);
            for start in [u32::MAX - 2, u32::MAX - 1, u32::MAX, i32::MAX as u32 - 1] {
                let wrapped = explore(name, programs, &[(TAIL, start), (HEAD, start)]);
                wrapped.assert_sound();
                assert_eq!(
                    wrapped.orders, from_zero.orders,
                    "{name} {programs:?} {start:#x}"
                );
                assert_eq!(wrapped.orders_by_request, from_zero.orders_by_request);
                assert_eq!(wrapped.try_answers, from_zero.try_answers);
            }
        }
    }
}

#[test]
fn a_ticket_lock_is_first_come_first_served() {
    for programs in [&["L", "L"][..], &["L", "L", "L"], &["L", "L", "L", "L"]] {
        let findings = explore("ticket", programs, &[]);
        findings.assert_sound();
        let fifo: Vec<u8> = (0..programs.len() as u8).collect();
        assert_eq!(findings.orders_by_request, BTreeSet::from([fifo]));
    }
}

/// Orders in which three threads enter that queued one after the other behind a holder.
fn orders_of_waiters(name: &str, words: &[(usize, u32)], time_outs: bool) -> BTreeSet<Vec<u8>> {
    let mut exploration = Exploration::new(kind(name), &["L", "L", "L", "L"]);
    exploration.words = words;
    exploration.time_outs = time_outs;
    exploration.keeps_orders = true;
    exploration.before = &[
        (0, Until::Inside),
        (1, Until::Waiting),
        (2, Until::Waiting),
        (3, Until::Waiting),
    ];
    let findings = exploration.run();
    println!("{name} {words:?}: {} states", findings.states);
    findings.assert_sound();
    findings.orders
}

/// Ruling 12: tau 0 allows the orders of test-and-set, an unbounded tau those of the ticket lock.
#[test]
fn tau_spans_from_test_and_set_to_ticket() {
    let test_and_set = orders_of_waiters("test_and_set", &[], true);
    let ticket = orders_of_waiters("ticket", &[], true);
    assert_eq!(test_and_set.len(), 6, "any order of three");
    assert_eq!(ticket, BTreeSet::from([vec![0, 1, 2, 3]]));

    let preemptable =
        |tau, time_outs| orders_of_waiters("preemptable_ticket", &[(TAU, tau)], time_outs);
    assert_eq!(preemptable(0, true), test_and_set);
    assert_eq!(preemptable(FOREVER, true), ticket);
    // In between: any order once a wait has timed out, FIFO as long as none has.
    assert_eq!(preemptable(16_384, true), test_and_set);
    assert_eq!(preemptable(16_384, false), ticket);
}
