// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every lock under x86's store buffers, all interleavings: nobody meets anybody inside that may not, what one wrote inside the
//! next one reads, every run ends whatever the host answers and without wake-ups by chance, order is kept where it is promised,
//! and the lock is free at the end. `long_store_buffers.rs` has what takes longer.

mod common;

use common::Proof;
use unspin_abi::LockKind;
use unspin_lockcheck::script::{Locks, RunStates};

/// Two threads, two acquisitions each; three threads, one each.
#[test]
fn every_lock_two_by_two_and_three_by_one() {
    for lock in LockKind::all() {
        let proof = Proof::of(lock.name());
        proof.run(&["L", "L"]);
        proof.run(&["LL", "LL"]);
        // Three tasks that may sleep: a million states and more, in long_store_buffers.rs.
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

/// A queue that has two places, and three who want one. Order is promised to those who have places only.
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

/// Unlocking what nobody holds changes nothing: the lock works as before.
#[test]
fn unlocking_what_nobody_holds_changes_nothing() {
    for lock in LockKind::all() {
        let proof = Proof::of(lock.name());
        proof.run(&["UL"]);
        proof.run(&["UUTQ"]);
        proof.run(&["LULU"]);
    }
    // These know who holds them: a stranger's unlock changes nothing either.
    for name in ["mutex", "helping_named"] {
        Proof::of(name).run(&["UL", "L"]);
        Proof::of(name).run(&["LU", "UL"]);
    }
}

/// The same without a choice: a host that always says the wrong thing, whichever that is.
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
