// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks of queues, and where tasks are placed by them.

use super::{MS, SLICE_NS};
use unspin_policy::mechanics::{
    NICE_0_WEIGHT, QueueClock, Weight, align_ns, before, charged_vtime_ns, moved_vtime_ns,
    placed_vtime_ns, shared_is_first, start_vtime_ns,
};

/// Two slices and a tick.
const REACH_NS: u64 = 2 * SLICE_NS + 4 * MS;

fn plain() -> Weight {
    Weight::flat(NICE_0_WEIGHT, [])
}

#[test]
fn virtual_times_wrap_around() {
    assert!(before(1, 2) && !before(2, 1) && !before(1, 1));
    assert!(before(u64::MAX, 0) && !before(0, u64::MAX));
    let late = u64::MAX - 5;
    assert_eq!(charged_vtime_ns(late, plain(), 10, late, SLICE_NS), 4);
    let mut clock = QueueClock {
        now_ns: late,
        offset_ns: 0,
    };
    clock.advance(4, None);
    assert_eq!(clock.now_ns, 4);
    // The clock has wrapped around while the task slept: it is no further behind than is allowed.
    let slept = charged_vtime_ns(late - 10 * REACH_NS, plain(), 0, 4, SLICE_NS);
    assert_eq!(slept, 4_u64.wrapping_sub(REACH_NS));
}

#[test]
fn a_sleepers_credit_ends_at_its_reach() {
    let now_ns = 1_000 * MS;
    for (weight, reach_ns) in [
        (NICE_0_WEIGHT, REACH_NS),
        (NICE_0_WEIGHT / 64, 64 * REACH_NS),
        (NICE_0_WEIGHT * 64, REACH_NS / 64),
    ] {
        let weight = Weight::flat(weight, []);
        let placed = |vtime_ns| placed_vtime_ns(vtime_ns, weight, 0, now_ns, SLICE_NS);
        let floor_ns = now_ns - reach_ns;
        assert_eq!(placed(0), floor_ns, "it slept for long");
        assert_eq!(placed(floor_ns + 1), floor_ns + 1, "it slept for a moment");
        assert_eq!(placed(now_ns + 7), now_ns + 7, "nobody is set back");
    }
}

#[test]
fn what_others_ran_at_its_charge_is_paid_where_it_is_placed() {
    let half = Weight::flat(NICE_0_WEIGHT / 2, []);
    assert_eq!(
        placed_vtime_ns(100 * MS, half, 3 * MS, 100 * MS, SLICE_NS),
        106 * MS
    );
}

#[test]
fn a_new_task_waits_a_slice_of_its_weight() {
    let clock = QueueClock {
        now_ns: 9 * MS,
        offset_ns: 0,
    };
    assert_eq!(
        start_vtime_ns(clock.now_ns, plain(), SLICE_NS),
        9 * MS + SLICE_NS
    );
    let light = Weight::flat(NICE_0_WEIGHT / 64, []);
    assert_eq!(
        start_vtime_ns(clock.now_ns, light, SLICE_NS),
        9 * MS + 64 * SLICE_NS
    );
}

#[test]
fn a_clock_goes_on_with_whoever_begins_a_slice_but_never_past_who_waits() {
    let mut clock = QueueClock::default();
    clock.advance(10, Some(20));
    assert_eq!(clock.now_ns, 10);
    clock.advance(30, Some(20));
    assert_eq!(clock.now_ns, 20, "out of order");
    clock.advance(5, Some(3));
    assert_eq!(clock.now_ns, 20, "it never goes back");
    clock.advance(40, None);
    assert_eq!(clock.now_ns, 40);
}

#[test]
fn a_pinned_task_is_placed_as_far_as_the_shared_queue_is_where_nobody_waits_beside_it() {
    // The pCPU's queue is at 100 by its own clock, where the shared one is at 150: 50 behind.
    let clock = QueueClock {
        now_ns: 100,
        offset_ns: 30,
    };
    assert_eq!(clock.placing_ns(180, true), 150);
    assert_eq!(clock.placing_ns(180, false), 100, "others wait by it");
    assert_eq!(clock.placing_ns(120, true), 100, "it is further already");
}

#[test]
fn who_moves_to_another_queue_keeps_its_position() {
    let (from_ns, to_ns) = (30_u64, 7_u64.wrapping_neg());
    let moved = moved_vtime_ns(100, from_ns, to_ns);
    assert_eq!(moved.wrapping_add(to_ns), 100 + from_ns);
    assert_eq!(moved_vtime_ns(100, 5, 5), 100);
}

#[test]
fn queues_that_nobody_waits_in_are_set_side_by_side() {
    let mut clock = QueueClock {
        now_ns: 500,
        offset_ns: 3,
    };
    clock.set_abreast(200);
    assert_eq!(clock.now_ns.wrapping_add(clock.offset_ns), 200);
}

#[test]
fn only_what_no_slice_can_have_earned_is_taken_off() {
    let align = |own_ns, shared_ns, weight| {
        align_ns(own_ns, shared_ns, SLICE_NS, |_| Weight::flat(weight, [])) as i64
    };
    let far = 3 * REACH_NS;
    assert_eq!(align(0, REACH_NS, NICE_0_WEIGHT), 0, "as far as it may be");
    assert_eq!(
        align(0, far, NICE_0_WEIGHT),
        2 * REACH_NS as i64,
        "own comes along"
    );
    assert_eq!(
        align(far, 0, NICE_0_WEIGHT),
        -2 * (REACH_NS as i64),
        "and so does the other"
    );
    assert_eq!(align(0, far, 1), 0, "a light one is that far for its slice");
    // A heavier task may stand where another has advanced the clock: its reach counts as no less than that of nice 0.
    assert_eq!(align(0, far, 100 * NICE_0_WEIGHT), 2 * REACH_NS as i64);
    // Across a wrap-around.
    let begin = u64::MAX - MS;
    assert_eq!(
        align(begin, begin.wrapping_add(far), NICE_0_WEIGHT),
        2 * REACH_NS as i64
    );
}

#[test]
fn the_one_that_is_ahead_is_weighed_and_only_where_they_are_far_apart() {
    let far = 3 * REACH_NS;
    for (own_ns, shared_ns, shared_is_ahead) in [(0, far, true), (far, 0, false)] {
        align_ns(own_ns, shared_ns, SLICE_NS, |ahead| {
            assert_eq!(ahead, shared_is_ahead);
            plain()
        });
    }
    align_ns(0, REACH_NS, SLICE_NS, |_| unreachable!("they are near"));
}

#[test]
fn the_least_position_is_first_and_of_equals_the_pcpus_own() {
    assert!(shared_is_first(Some(2), Some(1)));
    assert!(!shared_is_first(Some(1), Some(1)));
    assert!(
        !shared_is_first(Some(u64::MAX), Some(0)),
        "they wrap around"
    );
    assert!(shared_is_first(None, Some(9)));
    assert!(!shared_is_first(Some(9), None));
    assert!(!shared_is_first(None, None));
}
