// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longer cases of `store_buffers.rs`: three tasks at blocking locks, longer programs, more waiters than places.

mod common;

use common::Proof;
use unspin_abi::LockKind;
use unspin_lockcheck::script::Locks;

/// With room for the adaptive mutex's: a waiter that spins, sleeps or gives up at any moment, ten million states (1.6 GB).
fn large(name: &'static str) -> Proof {
    Proof {
        states_max: 40_000_000,
        ..Proof::of(name)
    }
}

#[test]
fn blocking_locks_three_by_one() {
    for lock in LockKind::all().filter(|lock| lock.blocks()) {
        let proof = large(lock.name());
        proof.run(&["L", "L", "L"]);
        proof.run(&["T", "L", "L"]);
        if lock.shares() {
            proof.run(&["R", "L", "L"]);
        }
        let two_places = Proof {
            locks: Locks::with_two_places(),
            ..proof
        };
        two_places.run(&["L", "L", "L"]);
    }
}

/// One of three waiters may give up at any moment.
#[test]
fn adaptive_mutex_with_a_deadline() {
    large("adaptive_mutex").run(&["D", "L", "L"]);
}

#[test]
fn spinning_locks_three_threads_of_which_two_come_back() {
    let small = |lock: &LockKind| !lock.blocks() && !lock.parks();
    for lock in LockKind::all().filter(small) {
        Proof::of(lock.name()).run(&["LL", "LL", "L"]);
        Proof::of(lock.name()).run(&["L", "L", "L", "L"]);
    }
    Proof::of("rcu").run(&["RR", "RR", "SS"]);
}
