// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptive reader-writer lock with readers that keep off for writers, and with waiters that give up at a deadline.

mod common;

use std::collections::BTreeSet;

use common::{Proof, kind};
use unspin_lockcheck::explore::{Exploration, Until};

fn proof() -> Proof {
    Proof::of("adaptive_rwlock")
}

#[test]
fn readers_keep_off() {
    for programs in [&["K", "L"][..], &["KL", "LK"], &["K", "K", "L"]] {
        proof().run(programs);
    }
}

/// A waiter that gives up leaves the lock as if it had never waited, and wakes whom it has kept off.
#[test]
fn a_waiter_gives_up() {
    for programs in [
        &["D"][..],
        &["E"],
        &["D", "L"],
        &["D", "R"],
        &["E", "L"],
        &["D", "K"],
        &["DL", "KD"],
        &["K", "D", "L"],
    ] {
        proof().run(programs);
    }
}

/// A deadline that passes is the only reason for which a wait fails.
#[test]
fn a_wait_fails_at_its_deadline_only() {
    for programs in [["L", "D"], ["R", "D"]] {
        let mut held = Exploration::new(kind("adaptive_rwlock"), &programs);
        held.before = &[(0, Until::Inside)];
        let answers = held.run().try_answers;
        assert_eq!(answers, BTreeSet::from([false, true]), "{programs:?}");
        held.time_outs = false;
        let findings = held.run();
        findings.assert_sound();
        assert_eq!(findings.try_answers, BTreeSet::from([true]), "{programs:?}");
    }
}
