// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with short runs have their share of a crowd in parts.

use std::collections::BTreeSet;

use proptest::prelude::*;
use unspin_policy::mechanics::{
    CROWD, CROWD_NOTES, FairClock, Weight, crowd, crowd_is_due, is_short, note_slot,
};

use super::{MS, SLICE_NS};

const US: u64 = 1_000;

#[test]
fn a_run_is_short_up_to_a_quarter_of_a_slice() {
    assert!(is_short(20 * US, SLICE_NS));
    assert!(is_short(SLICE_NS / 4, SLICE_NS));
    assert!(!is_short(SLICE_NS / 4 + 1, SLICE_NS));
}

#[test]
fn sixteen_for_each_cpu_are_a_crowd_and_are_counted_once_a_millisecond() {
    assert_eq!(crowd(15, 0, 1), None);
    assert_eq!(crowd(16, 0, 1), Some(16));
    assert_eq!(crowd(0, 63, 4), None);
    assert_eq!(crowd(1, 63, 4), Some(16));
    assert!(!crowd_is_due(MS, 2 * MS - 1) && crowd_is_due(MS, 2 * MS));
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

#[test]
fn the_clock_goes_on_by_what_was_served_over_those_who_wait() {
    let mut clock = FairClock::default();
    clock.advance(0, 512, 100 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), 100 * MS, "it begins at its queue's clock");
    // Half of 512 have run for 1 ms, while the queue's clock stood.
    clock.advance(256 * MS, 512, 100 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), 100 * MS + MS / 2);
    // One that is behind, or has come as far, is due.
    let half = 100 * MS + MS / 2;
    assert!(clock.is_due(99 * MS) && clock.is_due(half) && !clock.is_due(half + 1));
    // One that is 20 us further is due when all have run for so long.
    clock.advance((256 * MS) + 512 * 20 * US, 512, 100 * MS, SLICE_NS);
    assert!(clock.is_due(half + 20 * US) && !clock.is_due(half + 21 * US));
    // Fewer wait: faster.
    clock.advance(267 * MS + 240 * US, 32, 100 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), half + 20 * US + MS / 32);
}

#[test]
fn the_clock_is_never_behind_its_queues_and_goes_on_by_a_reach_at_most() {
    let mut clock = FairClock::default();
    clock.advance(5 * MS, 16, 7 * MS, SLICE_NS);
    clock.advance(5 * MS, 16, 9 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), 9 * MS);
    // A thousand waited for most of that time, 16 do now.
    clock.advance(905 * MS, 16, 9 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), 9 * MS + 2 * SLICE_NS + 4 * MS);
    // No crowd: its queue's clock, and what is served meanwhile does not count.
    clock.advance(906 * MS, 0, 10 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), 10 * MS);
    clock.advance(907 * MS, 0, 10 * MS, SLICE_NS);
    clock.advance(907 * MS, 16, 10 * MS, SLICE_NS);
    assert_eq!(clock.at_ns(), 10 * MS);
    // Virtual times wrap around.
    let mut clock = FairClock::default();
    clock.advance(u64::MAX - MS, 16, 1 << 63, SLICE_NS);
    clock.advance(u64::MAX - MS, 16, u64::MAX - MS, SLICE_NS);
    clock.advance(MS, 16, u64::MAX - MS, SLICE_NS);
    assert_eq!(
        clock.at_ns(),
        (u64::MAX - MS).wrapping_add((2 * MS + 1) / 16)
    );
    assert!(clock.is_due(u64::MAX - MS) && !clock.is_due(MS));
}

/// A CPU, a crowd of CPU hogs that stand at one virtual time, and a sleeper that runs for 20 us each time its share has come.
struct Crowd {
    weights: Vec<Weight>,
    queue: BTreeSet<(u64, usize)>,
    clock_ns: u64,
    served_ns: u64,
    now_ns: u64,
    fair: FairClock,
}

impl Crowd {
    fn new(weights: &[u32]) -> Crowd {
        let weights: Vec<Weight> = weights.iter().map(|own| Weight::flat(*own, [])).collect();
        Crowd {
            queue: (0..weights.len()).map(|task| (MS, task)).collect(),
            weights,
            clock_ns: MS,
            served_ns: 0,
            now_ns: 0,
            fair: FairClock::default(),
        }
    }

    fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    /// The first of the crowd runs for a slice.
    fn slice(&mut self) {
        let (vtime_ns, task) = self.queue.pop_first().expect("a crowd");
        self.clock_ns = self.clock_ns.max(vtime_ns);
        let ran_ns = self.weights[task].weighted_ns(SLICE_NS);
        self.served_ns += ran_ns;
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
    let (mut had_ns, mut waited_ns) = (0, 0);
    while all.now_ns < 300 * MS {
        let waiting = all.waiting() + 1;
        all.fair
            .advance(all.served_ns, waiting, all.clock_ns, SLICE_NS);
        if !all.fair.is_due(position_ns) {
            all.slice();
            continue;
        }
        waited_ns = waited_ns.max(all.now_ns - waits_since_ns);
        had_ns += RUN_NS;
        all.now_ns += RUN_NS;
        all.served_ns += weight.weighted_ns(RUN_NS);
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

    /// Beside a crowd of one weight it has its share, a run more at most, and waits as long as that takes, and two slices.
    #[test]
    fn it_has_its_share_in_parts(
        crowd in CROWD as usize..600,
        of in prop::sample::select(&WEIGHTS),
        own in prop::sample::select(&WEIGHTS),
    ) {
        let Had { had_ns, share_ns, waited_ns, due_in_ns } = beside_a_crowd(&vec![of; crowd], own);
        prop_assert!(had_ns <= share_ns * 1.1 + 2.0 * RUN_NS as f64, "had {had_ns} of {share_ns}");
        prop_assert!(waited_ns <= due_in_ns * 1.1 + 2.0 * SLICE_NS as f64, "waited {waited_ns}, {due_in_ns}");
    }

    /// In the first round all have a slice, light ones too: the clock goes by what that is by their weights, and so up to three
    /// times as fast as a fair one.
    #[test]
    fn of_different_weights_it_has_three_times_its_share_at_most(
        weights in prop::collection::vec(prop::sample::select(&WEIGHTS), CROWD as usize..600),
        own in prop::sample::select(&WEIGHTS),
    ) {
        let Had { had_ns, share_ns, waited_ns, due_in_ns } = beside_a_crowd(&weights, own);
        prop_assert!(had_ns <= 3.0 * share_ns + 2.0 * RUN_NS as f64, "had {had_ns} of {share_ns}");
        prop_assert!(waited_ns <= 3.0 * due_in_ns + 2.0 * SLICE_NS as f64, "waited {waited_ns}, {due_in_ns}");
    }
}
