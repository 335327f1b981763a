// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places where a guest waits: how far a place extends, for which address space, and for how long.

use proptest::prelude::*;
use unspin_policy::{SPIN_PLACES, SpinPlaces};

const S: u64 = 1_000_000_000;
/// In a Linux guest's kernel.
const LOCK: u64 = 0xffff_ffff_8134_6a3f;

#[test]
fn a_place_reaches_as_far_as_a_loop() {
    let mut places = SpinPlaces::default();
    assert!(!places.is_one(0, None, 1), "none so far");
    places.learn(LOCK, None, S);
    for (at, waits) in [
        (LOCK, true),
        (LOCK - 128, true),
        (LOCK + 128, true),
        (LOCK - 129, false),
        (LOCK + 129, false),
    ] {
        assert_eq!(places.is_one(at, None, S), waits, "{at:x}");
    }
    // At the ends of the addresses, too.
    places.learn(u64::MAX, None, S);
    assert!(places.is_one(u64::MAX, None, S));
}

#[test]
fn a_place_of_user_mode_is_one_programs() {
    let mut places = SpinPlaces::default();
    places.learn(0x40_1000, Some(0x5000), S);
    assert!(places.is_one(0x40_1010, Some(0x5000), S));
    assert!(!places.is_one(0x40_1010, Some(0x6000), S));
    assert!(!places.is_one(0x40_1010, None, S));
}

#[test]
fn a_place_is_forgotten_after_ten_seconds_without_an_exit() {
    let mut places = SpinPlaces::default();
    places.learn(LOCK, None, S);
    places.learn(LOCK + 8, None, 6 * S);
    assert!(places.is_one(LOCK, None, 16 * S - 1), "seen again at 6 s");
    assert!(!places.is_one(LOCK, None, 16 * S));
}

/// Another CPU has seen it after this one read its clock: it is one place, stored once.
#[test]
fn a_place_seen_later_on_another_cpu_is_known() {
    let mut places = SpinPlaces::default();
    places.learn(LOCK, None, S + 500);
    assert!(places.is_one(LOCK, None, S));
    for other in 1..SPIN_PLACES as u64 {
        places.learn(LOCK + 4_096 * other, None, S);
    }
    places.learn(LOCK, None, S);
    for other in 1..SPIN_PLACES as u64 {
        assert!(places.is_one(LOCK + 4_096 * other, None, S), "{other}");
    }
}

#[test]
fn the_oldest_goes_when_there_is_no_room() {
    let mut places = SpinPlaces::default();
    for number in 0..=SPIN_PLACES as u64 {
        places.learn(LOCK + 4_096 * number, None, S);
    }
    assert!(!places.is_one(LOCK, None, S));
    for number in 1..=SPIN_PLACES as u64 {
        assert!(places.is_one(LOCK + 4_096 * number, None, S), "{number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever a guest does, what it did last is known.
    #[test]
    fn the_last_one_is_known(each in prop::collection::vec((any::<u64>(), prop::option::of(1u64..9)), 1..50)) {
        let mut places = SpinPlaces::default();
        for (at, (pointer, space)) in each.iter().enumerate() {
            places.learn(*pointer, *space, S + at as u64);
            prop_assert!(places.is_one(*pointer, *space, S + at as u64));
        }
    }
}
