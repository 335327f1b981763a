// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as spun: windows, and what an interrupt ends.

use super::US;
use proptest::prelude::*;
use unspin_policy::auto::{SpinMeter, StretchEnd, UsefulTime};

/// A vCPU that is in its guest for so long each time, and leaves it like this; what comes of it.
fn stretches(each: &[(u64, StretchEnd, Option<u32>)]) -> UsefulTime {
    let (mut meter, mut sums, mut now_ns) = (SpinMeter::default(), UsefulTime::default(), US);
    for (length_ns, end, window) in each {
        meter.enter(now_ns);
        now_ns += length_ns;
        meter.exit(&mut sums, *end, *window, now_ns);
        now_ns += 5 * US;
    }
    sums
}

const SPUN: StretchEnd = StretchEnd::PauseLoop;

#[test]
fn a_window_was_spun_and_what_came_before_it_was_not() {
    let sums = stretches(&[(50 * US, SPUN, Some(200)), (80 * US, SPUN, Some(200))]);
    assert_eq!((sums.guest_ns, sums.spin_ns), (130 * US, 100 * US));
    assert_eq!((sums.spin_exits, sums.useful_ns()), (2, 30 * US));
}

/// KVM doubles the window after each exit (grow = 2): then a window takes twice as long.
#[test]
fn a_window_that_has_grown_took_longer() {
    let sums = stretches(&[(50 * US, SPUN, Some(3_000)), (130 * US, SPUN, Some(6_000))]);
    assert_eq!(sums.spin_ns, 150 * US);
}

#[test]
fn an_interrupt_finds_a_spinner_spinning() {
    let interrupted = StretchEnd::Interrupted;
    let window = Some(200);
    let sums = stretches(&[
        (50 * US, SPUN, window),
        (20 * US, interrupted, window),
        (10 * US, interrupted, window),
        (50 * US, interrupted, window), // As long as a window without an exit: it does something else.
        (10 * US, interrupted, window),
    ]);
    assert_eq!(sums.spin_ns, 80 * US);
    let halted = [
        (50 * US, SPUN, window),
        (20 * US, StretchEnd::Other, window),
    ];
    assert_eq!(stretches(&halted).spin_ns, 50 * US);
}

#[test]
fn a_sample_at_a_place_of_waiting_counts_whole_up_to_a_window() {
    let window = Some(200);
    let sums = stretches(&[
        (50 * US, SPUN, window),
        (20 * US, StretchEnd::Waiting, window),
        (300 * US, StretchEnd::Other, window),
        (300 * US, StretchEnd::Waiting, window),
    ]);
    assert_eq!(sums.spin_ns, 120 * US);
}

#[test]
fn without_a_window_nothing_is_known_and_all_counts_as_useful() {
    for window in [None, Some(0)] {
        // Not known: no more is claimed than what the vCPU was in its guest for.
        let sums = stretches(&[(50 * US, StretchEnd::Interrupted, window)]);
        assert_eq!((sums.spin_ns, sums.spin_exits), (0, 0));
    }
}

#[test]
fn an_exit_without_an_entry_and_a_clock_that_goes_back_count_nothing() {
    let (mut meter, mut sums) = (SpinMeter::default(), UsefulTime::default());
    meter.exit(&mut sums, SPUN, Some(200), 7 * US);
    meter.enter(9 * US);
    meter.exit(&mut sums, SPUN, Some(200), 8 * US);
    assert_eq!(sums, UsefulTime::default());
    assert_eq!(sums.spin_permille(), 0);
}

fn end() -> impl Strategy<Value = StretchEnd> {
    prop_oneof![
        Just(StretchEnd::PauseLoop),
        Just(StretchEnd::Interrupted),
        Just(StretchEnd::Other),
        Just(StretchEnd::Waiting)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nobody_spins_for_longer_than_it_is_there(
        each in prop::collection::vec((0..u64::MAX >> 20, end(), prop::option::of(any::<u32>())), 0..40)
    ) {
        let sums = stretches(&each);
        prop_assert!(sums.spin_ns <= sums.guest_ns);
        prop_assert!(sums.spin_permille() <= 1_000);
    }
}
