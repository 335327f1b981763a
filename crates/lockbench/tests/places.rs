// SPDX-License-Identifier: MIT OR Apache-2.0
//! More waiters than a lock has places for: those with greater numbers share one (locks/parts/place.h). They get in like the others,
//! nobody meets anybody, nobody hangs.
#![allow(missing_docs)]

use std::{sync::Barrier, thread};

use unspin_abi::{LockKind, UNSPIN_QUANTILES, unspin_distribution};
use unspin_lockbench::group::{Group, Phase, Work};

/// `PLATFORM_WAITERS_MAX` of locks/platform/threads.h.
const PLACES: u32 = 64;

fn constant(loops: u32) -> unspin_distribution {
    unspin_distribution {
        quantile_loops: [loops; UNSPIN_QUANTILES as usize],
    }
}

/// Threads with these numbers, each for so many iterations; what they saw must add up.
fn meet(kind: LockKind, numbers: &[u32], iterations: u32) {
    let work = Work {
        user_work: constant(0),
        kernel_work: constant(0),
        hold: constant(2_000),
        locks: 1,
        iterations,
        pause_every_spins: 1,
        seed: 5,
    };
    let most = numbers.iter().max().expect("threads") + 1;
    let mut group = Group::new(kind, most, 1);
    let (phase, together) = (Phase::new(false), Barrier::new(numbers.len()));
    let shared = &group;
    let entered: u64 = thread::scope(|scope| {
        let run = |number: u32| {
            let (group, work, phase, together) = (shared, &work, &phase, &together);
            scope.spawn(move || {
                together.wait();
                let seen = group.validate(work, phase, number);
                assert_eq!(seen.violations, 0, "{} as {number}: {seen:?}", kind.name());
                assert!(seen.locked > 0);
                seen.locked + seen.try_locked
            })
        };
        let handles: Vec<_> = numbers.iter().map(|number| run(*number)).collect();
        let seen = handles.into_iter().map(|one| one.join().expect("no panic"));
        seen.sum()
    });
    assert_eq!(group.entries(), entered, "{}", kind.name());
    assert_eq!(group.still_locked(), 0, "{}", kind.name());
}

#[test]
fn waiters_without_a_place_of_their_own_take_part() {
    for kind in LockKind::all() {
        meet(kind, &[PLACES - 1, PLACES, PLACES + 1], 60);
        meet(kind, &[PLACES, PLACES + 1, PLACES + 7], 60);
    }
}
