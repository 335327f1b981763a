// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as spun: windows, and what an interrupt finds.

use super::US;
use proptest::prelude::*;
use unspin_policy::{
    SpinPlaces,
    auto::{SpinMeter, Stretch, StretchEnd, UsefulTime},
};

/// Where a Linux guest waits for a spinlock, and where it does not.
const LOCK: Option<u64> = Some(0xffff_ffff_8134_6a3f);
const ELSEWHERE: Option<u64> = Some(0xffff_ffff_8100_0000);

/// A vCPU that is in its guest for so long each time, and leaves it like this; what comes of it.
fn stretches(each: &[(u64, StretchEnd, Option<u64>, Option<u32>)]) -> UsefulTime {
    let (mut meter, mut sums, mut now_ns) = (SpinMeter::default(), UsefulTime::default(), US);
    let mut places = SpinPlaces::default();
    for &(length_ns, end, pointer, window) in each {
        meter.enter(now_ns);
        now_ns += length_ns;
        let stretch = Stretch {
            now_ns,
            end,
            pointer,
            space: None,
            window,
        };
        meter.exit(&mut places, &mut sums, &stretch);
        now_ns += 5 * US;
    }
    sums
}

/// Rounded: units are kept in picoseconds.
fn us(ns: u64) -> u64 {
    (ns + US / 2) / US
}

/// Within a 32nd: a unit that is known is taken for 64th longer at each exit that was slower.
fn is_about(ns: u64, expected_us: u64) -> bool {
    (ns / US).abs_diff(expected_us) * 32 <= expected_us
}

const SPUN: StretchEnd = StretchEnd::PauseLoop;
const STOPPED: StretchEnd = StretchEnd::Interrupted;

#[test]
fn a_window_was_spun_and_what_came_before_it_was_not() {
    let window = Some(200);
    let sums = stretches(&[(50 * US, SPUN, LOCK, window), (80 * US, SPUN, LOCK, window)]);
    assert_eq!((sums.guest_ns, sums.spin_exits), (130 * US, 2));
    assert!(is_about(sums.spin_ns, 100), "{sums:?}");
    assert_eq!(sums.useful_ns(), sums.guest_ns - sums.spin_ns);
}

/// KVM doubles the window after each exit (grow = 2): then a window takes twice as long.
#[test]
fn a_window_that_has_grown_took_longer() {
    let sums = stretches(&[
        (50 * US, SPUN, LOCK, Some(3_000)),
        (130 * US, SPUN, LOCK, Some(6_000)),
    ]);
    assert!(is_about(sums.spin_ns, 150), "{sums:?}");
}

/// A guest that boots waits in a loop of four instructions, its lock in one of seventy: each has a unit of its own.
#[test]
fn a_quick_loop_elsewhere_says_nothing_of_this_one() {
    let window = Some(3_000);
    let sums = stretches(&[
        (24 * US, SPUN, ELSEWHERE, window),
        (400 * US, SPUN, LOCK, window),
        (500 * US, SPUN, LOCK, window),
    ]);
    assert!(is_about(sums.spin_ns, 824), "{sums:?}");
}

/// A CPU is twice as fast while its sibling sleeps: a time measured then is replaced once the sibling runs.
#[test]
fn a_loop_may_become_slower() {
    let window = Some(3_000);
    let mut each = vec![(100 * US, SPUN, LOCK, window)];
    each.extend([(200 * US, SPUN, LOCK, window); 200]);
    let early = stretches(&each[..10]);
    assert_eq!(
        us(early.spin_ns) / 10,
        107,
        "half of it counts as useful at first"
    );
    let last = stretches(&each).spin_ns - stretches(&each[..190]).spin_ns;
    assert_eq!(us(last), 11 * 200);
}

#[test]
fn an_interrupt_is_a_sample() {
    let window = Some(200);
    let sums = stretches(&[
        (50 * US, SPUN, LOCK, window),
        (20 * US, STOPPED, LOCK.map(|at| at - 40), window),
        (300 * US, STOPPED, ELSEWHERE, window),
        // No more than a window: an exit would have come.
        (300 * US, STOPPED, LOCK, window),
        (20 * US, StretchEnd::Other, LOCK, window),
    ]);
    assert_eq!(sums.spin_ns, 120 * US);
}

/// Intel: a vCPU that was spinning counts as spinning until it is in its guest for longer than a window.
#[test]
fn without_a_place_a_spinner_spins_on() {
    let window = Some(4_096);
    let sums = stretches(&[
        (50 * US, SPUN, None, window),
        (20 * US, STOPPED, None, window),
        (10 * US, STOPPED, None, window),
        (50 * US, STOPPED, None, window),
        (10 * US, STOPPED, None, window),
    ]);
    assert_eq!(us(sums.spin_ns), 80);
    let halted = [
        (50 * US, SPUN, None, window),
        (20 * US, StretchEnd::Other, None, window),
        (10 * US, STOPPED, None, window),
    ];
    assert_eq!(us(stretches(&halted).spin_ns), 50);
}

#[test]
fn a_window_that_is_not_known_has_no_end() {
    let sums = stretches(&[(50 * US, SPUN, LOCK, None), (90 * US, STOPPED, LOCK, None)]);
    assert_eq!(sums.spin_ns, 140 * US);
    assert_eq!(stretches(&[(50 * US, STOPPED, LOCK, None)]).spin_ns, 0);
}

#[test]
fn an_exit_without_an_entry_and_a_clock_that_goes_back_count_nothing() {
    let (mut meter, mut sums) = (SpinMeter::default(), UsefulTime::default());
    let mut places = SpinPlaces::default();
    let mut stretch = Stretch {
        now_ns: 7 * US,
        end: SPUN,
        pointer: LOCK,
        space: Some(0x5000),
        window: Some(200),
    };
    meter.exit(&mut places, &mut sums, &stretch);
    meter.enter(9 * US);
    stretch.now_ns = 8 * US;
    meter.exit(&mut places, &mut sums, &stretch);
    assert_eq!(sums, UsefulTime::default());
    assert_eq!(sums.spin_permille(), 0);
    stretch.now_ns = 19 * US;
    meter.exit(&mut places, &mut sums, &stretch);
    assert_eq!((sums.spin_exits, sums.user_spin_exits), (1, 1));
}

fn end() -> impl Strategy<Value = StretchEnd> {
    prop_oneof![
        Just(StretchEnd::PauseLoop),
        Just(StretchEnd::Interrupted),
        Just(StretchEnd::Other),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nobody_spins_for_longer_than_it_is_there(
        each in prop::collection::vec(
            (0..u64::MAX >> 20, end(), prop::option::of(0..9_000u64), prop::option::of(any::<u32>())),
            0..40,
        )
    ) {
        let sums = stretches(&each);
        prop_assert!(sums.spin_ns <= sums.guest_ns);
        prop_assert!(sums.spin_permille() <= 1_000);
    }
}

/// A vCPU that gets a lock as soon as it gets its CPU, and waits for the rest of its slice: 20 us of 100 are work. By its exits all of
/// it is spun; by samples at random times four fifths are.
#[test]
fn samples_at_random_times_say_what_exits_do_not() {
    let (mut meter, mut places) = (SpinMeter::default(), SpinPlaces::default());
    let mut sums = UsefulTime::default();
    let stretch = |now_ns, end, pointer| Stretch {
        now_ns,
        end,
        pointer,
        space: None,
        window: Some(3_000),
    };
    // The place of the wait is stored.
    meter.enter(US);
    meter.exit(&mut places, &mut sums, &stretch(200 * US, SPUN, LOCK));
    let before = sums;
    let (mut now_ns, mut random) = (1_000 * US, 1u64);
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
        // The timer fires in one slice of five.
        let at_us = (random >> 33) % 500;
        let mut part = |from_us: u64, to_us: u64, sampled: bool| {
            let place = if to_us < 20 { ELSEWHERE } else { LOCK };
            meter.enter(now_ns + from_us * US);
            let end = stretch(now_ns + to_us * US, STOPPED, place);
            meter.exit(&mut places, &mut sums, &end);
            if sampled {
                meter.sample(&mut sums);
            }
        };
        match at_us {
            1..100 => {
                part(0, at_us, true);
                part(at_us, 100, false);
            }
            _ => part(0, 100, false),
        }
        now_ns += 200 * US;
    }
    let grown = sums.since(&before);
    assert!(grown.spin_permille() > 930, "{grown:?}");
    let sampled = grown.by_samples();
    assert!(sampled.spin_permille().abs_diff(800) < 30, "{sampled:?}");
    assert_eq!(sampled.guest_ns, grown.guest_ns);
}

/// Only a vCPU that the timer has stopped in its guest is a sample; few samples give no result.
#[test]
fn a_vcpu_in_the_host_is_no_sample() {
    let (mut meter, mut places) = (SpinMeter::default(), SpinPlaces::default());
    let mut sums = UsefulTime::default();
    meter.sample(&mut sums);
    meter.enter(US);
    meter.sample(&mut sums);
    let window = Some(200);
    for (end, samples) in [(SPUN, 0), (StretchEnd::Other, 0), (STOPPED, 1)] {
        let stretch = Stretch {
            now_ns: sums.guest_ns + 60 * US,
            end,
            pointer: LOCK,
            space: None,
            window,
        };
        meter.enter(sums.guest_ns + 10 * US);
        meter.exit(&mut places, &mut sums, &stretch);
        meter.sample(&mut sums);
        assert_eq!(sums.samples, samples, "{end:?}");
    }
    assert_eq!(sums.waiting, 1);
    let one = sums.by_samples();
    assert_eq!((one.guest_ns, one.spin_ns), (0, 0), "one sample");
    sums.samples = 50;
    assert_eq!(sums.by_samples().spin_ns, sums.guest_ns / 50);
}
