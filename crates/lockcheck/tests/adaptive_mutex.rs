// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptive mutex with waiters that give up at a deadline, and with three threads.

mod common;

use std::collections::BTreeSet;

use common::{Proof, kind};
use unspin_lockcheck::explore::{Exploration, Until};

fn proof() -> Proof {
    Proof::of("adaptive_mutex")
}

/// A thread that gives up passes on a wake-up that it may have received, and leaves the lock as if it had never waited.
#[test]
fn a_waiter_gives_up() {
    for programs in [&["D"][..], &["D", "L"], &["DL", "DL"], &["DT", "LD"]] {
        proof().run(programs);
    }
}

/// A deadline that passes is the only reason for which the wait fails.
#[test]
fn a_wait_fails_at_its_deadline_only() {
    let mut held = Exploration::new(kind("adaptive_mutex"), &["L", "D"]);
    held.before = &[(0, Until::Inside)];
    let answers = held.run().try_answers;
    assert_eq!(answers, BTreeSet::from([false, true]));
    held.time_outs = false;
    let findings = held.run();
    findings.assert_sound();
    assert_eq!(findings.try_answers, BTreeSet::from([true]));
}

#[test]
fn three_threads_of_which_one_never_waits() {
    proof().run(&["T", "L", "L"]);
    proof().run(&["T", "D", "L"]);
}
