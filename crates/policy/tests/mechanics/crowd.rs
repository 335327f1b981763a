// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with short runs have their share of a crowd in parts.

use std::collections::BTreeSet;

use proptest::prelude::*;
use unspin_policy::mechanics::{
    CROWD, CROWD_NOTES, FairClock, NICE_0_WEIGHT, Weight, crowd_clock_ns, crowd_is_due,
    crowd_is_over, fair_share_ns, is_crowd, is_short, note_slot,
};

use super::{MS, SLICE_NS};

const US: u64 = 1_000;

#[test]
fn runs_are_short_up_to_a_quarter_of_a_slice_in_the_mean() {
    assert!(is_short(20 * US, SLICE_NS));
    assert!(is_short(SLICE_NS / 4, SLICE_NS));
    assert!(!is_short(SLICE_NS / 4 + 1, SLICE_NS));
}

#[test]
fn sixteen_for_each_cpu_are_a_crowd_and_are_counted_once_a_millisecond() {
    assert!(!is_crowd(15, 0, 1));
    assert!(is_crowd(16, 0, 1));
    assert!(!is_crowd(0, 63, 4));
    assert!(is_crowd(1, 63, 4));
    assert!(!crowd_is_due(MS, 2 * MS - 1) && crowd_is_due(MS, 2 * MS));
    // Another CPU of the domain counts at another time.
    assert!(!crowd_is_over(MS, 3 * MS) && crowd_is_over(MS, 3 * MS + 1));
}

#[test]
fn notes_fill_all_places_then_replace_one_after_another() {
    let all = CROWD_NOTES as u32;
    for notes in 0..all {
        assert_eq!(note_slot(notes, 7), notes);
    }
    for replaced in 0..3 * all {
        assert_eq!(note_slot(all, replaced), replaced % all);
    }
    assert!(note_slot(u32::MAX, u32::MAX) < all);
}

/// A fair share of that time of one CPU where so many tasks of nice 0 are runnable.
fn share_ns(ran_ns: u64, tasks: i64) -> u64 {
    fair_share_ns(ran_ns, tasks * i64::from(NICE_0_WEIGHT), 1)
}

#[test]
fn a_fair_share_is_a_cpus_time_over_its_part_of_what_is_runnable() {
    assert_eq!(share_ns(256 * MS, 512), MS / 2);
    // Each of two CPUs adds its half.
    let weight = 512 * i64::from(NICE_0_WEIGHT);
    assert_eq!(fair_share_ns(256 * MS, weight, 2), MS / 2);
    // One of nice 0 beside one of nine times the weight.
    assert_eq!(share_ns(10 * MS, 10), MS);
    // A sum that is just changing means nothing.
    assert_eq!((share_ns(MS, 0), share_ns(MS, -1)), (0, 0));
    assert!(share_ns(u64::MAX, 1) <= 10_000_000_000);
}

const REACH_NS: u64 = 2 * SLICE_NS + 4 * MS;

#[test]
fn the_clock_goes_on_by_shares_the_more_slowly_the_further_it_is_ahead() {
    let mut clock = FairClock::default();
    clock.advance(0, 100 * MS, SLICE_NS);
    assert_eq!(clock.at_ns, 100 * MS, "it begins at its queue's clock");
    clock.advance(MS, 100 * MS, SLICE_NS);
    assert_eq!(clock.at_ns, 101 * MS);
    // One that is behind, or has come as far, is due.
    assert!(clock.is_due(99 * MS) && clock.is_due(101 * MS) && !clock.is_due(101 * MS + 1));
    clock.advance(MS, 100 * MS, SLICE_NS);
    assert_eq!(clock.at_ns, 102 * MS - MS * MS / REACH_NS - 1);
    // Its queue comes along.
    clock.advance(MS, clock.at_ns, SLICE_NS);
    assert_eq!(clock.at_ns, 103 * MS - MS * MS / REACH_NS - 1);
}

#[test]
fn the_clock_is_never_behind_its_queues_and_a_reach_ahead_of_it_at_most() {
    let mut clock = FairClock { at_ns: 7 * MS };
    clock.advance(0, 9 * MS, SLICE_NS);
    assert_eq!(clock.at_ns, 9 * MS);
    for _ in 0..100 {
        clock.advance(u64::MAX, 9 * MS, SLICE_NS);
    }
    assert_eq!(clock.at_ns, 9 * MS + REACH_NS);
    // Its queue's clock was set back.
    clock.advance(MS, 8 * MS, SLICE_NS);
    assert_eq!(clock.at_ns, 8 * MS + REACH_NS);
    // Virtual times wrap around.
    let mut clock = FairClock { at_ns: 1 << 63 };
    clock.advance(0, u64::MAX - MS, SLICE_NS);
    clock.advance(2 * MS, u64::MAX - MS, SLICE_NS);
    assert_eq!(clock.at_ns, MS - 1);
    assert!(clock.is_due(u64::MAX - MS) && !clock.is_due(MS));
}

#[test]
fn who_wakes_up_in_a_crowd_is_placed_by_the_fair_clock_if_it_is_ahead() {
    let clock_ns = |clock_ns, fair_ns| crowd_clock_ns(clock_ns, fair_ns, SLICE_NS);
    assert_eq!(clock_ns(100 * MS, 101 * MS), 101 * MS);
    assert_eq!(clock_ns(100 * MS, 99 * MS), 100 * MS);
    let far = 100 * MS + REACH_NS;
    assert_eq!(clock_ns(100 * MS, far), far);
    assert_eq!(clock_ns(100 * MS, far + 1), 100 * MS, "an old one");
    assert_eq!(clock_ns(u64::MAX, MS), MS);
}

/// A CPU, a crowd of CPU hogs that stand at one virtual time, and a sleeper that runs for 20 us each time its share has come.
struct Crowd {
    weights: Vec<Weight>,
    sum: i64,
    queue: BTreeSet<(u64, usize)>,
    clock_ns: u64,
    now_ns: u64,
    fair: FairClock,
}

impl Crowd {
    fn new(own_weights: &[u32]) -> Crowd {
        let weights: Vec<Weight> = own_weights
            .iter()
            .map(|own| Weight::flat(*own, []))
            .collect();
        Crowd {
            queue: (0..weights.len()).map(|task| (MS, task)).collect(),
            weights,
            sum: own_weights.iter().copied().map(i64::from).sum(),
            clock_ns: MS,
            now_ns: 0,
            fair: FairClock::default(),
        }
    }

    /// The first of the crowd runs for a slice.
    fn slice(&mut self) {
        let (vtime_ns, task) = self.queue.pop_first().expect("a crowd");
        self.clock_ns = self.clock_ns.max(vtime_ns);
        let ran_ns = self.weights[task].weighted_ns(SLICE_NS);
        self.now_ns += SLICE_NS;
        self.queue.insert((vtime_ns + ran_ns, task));
    }
}

/// What a sleeper with that weight has of 300 ms beside a crowd, and how long it waits at most, beside its share and what it would
/// wait for that.
struct Had {
    had_ns: f64,
    share_ns: f64,
    waited_ns: f64,
    due_in_ns: f64,
}

const RUN_NS: u64 = 20 * US;

/// It would run whenever it may.
fn beside_a_crowd(weights: &[u32], own: u32) -> Had {
    let mut all = Crowd::new(weights);
    let weight = Weight::flat(own, []);
    let (mut position_ns, mut waits_since_ns) = (MS, 0);
    let (mut had_ns, mut waited_ns, mut shared_ns) = (0, 0, 0);
    while all.now_ns < 300 * MS {
        let share_ns = fair_share_ns(all.now_ns - shared_ns, all.sum + i64::from(own), 1);
        shared_ns = all.now_ns;
        all.fair.advance(share_ns, all.clock_ns, SLICE_NS);
        if !all.fair.is_due(position_ns) {
            all.slice();
            continue;
        }
        waited_ns = waited_ns.max(all.now_ns - waits_since_ns);
        had_ns += RUN_NS;
        all.now_ns += RUN_NS;
        position_ns += weight.weighted_ns(RUN_NS);
        waits_since_ns = all.now_ns;
    }
    let sum: u32 = weights.iter().sum::<u32>() + own;
    let share = f64::from(own) / f64::from(sum);
    Had {
        had_ns: had_ns as f64,
        share_ns: share * all.now_ns as f64,
        waited_ns: waited_ns as f64,
        due_in_ns: RUN_NS as f64 / share,
    }
}

const WEIGHTS: [u32; 3] = [335, 1024, 3121];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Beside a crowd of any weights it has its share, a run more at most, and waits as long as that takes, half as long more while the
    /// queue's clock stands, and two slices.
    #[test]
    fn it_has_its_share_in_parts(
        weights in prop::collection::vec(prop::sample::select(&WEIGHTS), CROWD as usize..600),
        own in prop::sample::select(&WEIGHTS),
    ) {
        let Had { had_ns, share_ns, waited_ns, due_in_ns } = beside_a_crowd(&weights, own);
        prop_assert!(had_ns <= share_ns * 1.1 + 2.0 * RUN_NS as f64, "had {had_ns} of {share_ns}");
        prop_assert!(waited_ns <= due_in_ns * 1.5 + 2.0 * SLICE_NS as f64, "waited {waited_ns}, {due_in_ns}");
    }
}
