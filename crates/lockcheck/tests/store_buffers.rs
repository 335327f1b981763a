// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every lock under x86's store buffers, all interleavings: exclusion holds, each thread inside reads what the previous
//! one wrote, every run ends whatever the host answers and without spurious wake-ups, order is kept where it is
//! promised, and the lock is free at the end. The longer cases are in `long_store_buffers.rs`.

mod common;

use common::Proof;
use unspin_abi::LockKind;
use unspin_lockcheck::script::{Locks, RunStates};

/// Two threads with two acquisitions each; three threads with one each.
#[test]
fn every_lock_two_by_two_and_three_by_one() {
    for lock in LockKind::all() {
        let proof = Proof::of(lock.name());
        proof.run(&["L", "L"]);
        proof.run(&["LL", "LL"]);
        // Three tasks that may sleep have more than a million states: long_store_buffers.rs.
        if !lock.blocks() {
            proof.run(&["L", "L", "L"]);
            proof.run(&["T", "L", "L"]);
        }
    }
}

#[test]
fn readers_share_and_writers_do_not() {
    for lock in LockKind::all().filter(|lock| lock.shares()) {
        let proof = Proof::of(lock.name());
        proof.run(&["R", "L"]);
        proof.run(&["RL", "LR"]);
        proof.run(&["P", "T", "L"]);
        proof.run(&["R", "R", "L"]);
        if !lock.blocks() {
            proof.run(&["R", "L", "L"]);
        }
    }
}

/// A reader that began before synchronize never sees what is reclaimed after it, and synchronize returns.
#[test]
fn rcu_readers_never_see_what_was_reclaimed() {
    let rcu = Proof::of("rcu");
    for programs in [&["R", "S"][..], &["R", "R", "S"], &["RR", "SS"]] {
        rcu.run(programs);
    }
    let two_places = Proof {
        locks: Locks::with_two_places(),
        ..rcu
    };
    two_places.run(&["S", "R", "R"]);
}

/// Three threads at a queue of two places. Order is promised only to threads with a place.
#[test]
fn a_lock_with_more_waiters_than_places() {
    for lock in LockKind::all().filter(|lock| !lock.blocks()) {
        let proof = Proof {
            locks: Locks::with_two_places(),
            in_order: false,
            ..Proof::of(lock.name())
        };
        proof.run(&["L", "L", "L"]);
    }
}

/// Unlocking a lock that is not held changes nothing.
#[test]
fn unlocking_what_nobody_holds_changes_nothing() {
    for lock in LockKind::all() {
        let proof = Proof::of(lock.name());
        proof.run(&["UL"]);
        proof.run(&["UUTQ"]);
        proof.run(&["LULU"]);
    }
    // These locks store their holder: the unlock of another thread changes nothing either.
    for name in ["mutex", "helping_named"] {
        Proof::of(name).run(&["UL", "L"]);
        Proof::of(name).run(&["LU", "UL"]);
    }
}

/// The same with a host that always gives the same answer, yes or no.
#[test]
fn a_host_that_always_says_the_same() {
    for lock in LockKind::all() {
        for run_states in [RunStates::Never, RunStates::Always] {
            let proof = Proof {
                run_states,
                ..Proof::of(lock.name())
            };
            proof.run(&["L", "L"]);
            proof.run(&["LL", "LL"]);
        }
    }
}
