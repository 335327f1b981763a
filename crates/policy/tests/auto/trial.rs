// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts of pairs, and how often they are wrong.

use proptest::prelude::*;
use unspin_policy::auto::{TRIAL_PAIRS, Trial, TrialVerdict};

fn trial(pairs: &[(u64, u64)]) -> Trial {
    let mut trial = Trial::default();
    pairs
        .iter()
        .for_each(|(acting, tried)| trial.add(*acting, *tried));
    trial
}

#[test]
fn a_clear_difference_needs_a_few_pairs() {
    let better = [(1_000, 2_000), (1_010, 2_030), (990, 1_990)];
    assert_eq!(trial(&better[..1]).verdict(), TrialVerdict::Open);
    assert_eq!(trial(&better).verdict(), TrialVerdict::Better);
    let interval = trial(&better).interval().expect("three pairs");
    assert!((interval.middle - 2.01).abs() < 0.02, "{interval:?}");
    assert!(interval.low > 1.9 && interval.high < 2.2, "{interval:?}");
    assert_eq!(trial(&better[..1]).interval(), None);
    let tenth = [(1_000, 890), (1_000, 850)];
    assert_eq!(trial(&tenth).verdict(), TrialVerdict::Open);
    assert_eq!(trial(&tenth).verdict_in_haste(), TrialVerdict::NotBetter);
    let half = [(1_000, 490), (1_000, 790)];
    assert_eq!(trial(&half).verdict(), TrialVerdict::NotBetter);
    let worse = [(1_000, 510), (1_000, 650), (1_000, 750)];
    assert_eq!(trial(&worse[..2]).verdict(), TrialVerdict::Open);
    assert_eq!(trial(&worse).verdict(), TrialVerdict::NotBetter);
}

#[test]
fn half_a_percent_is_no_reason_to_change() {
    let pairs = [(10_000, 10_050); 4];
    assert_eq!(trial(&pairs).verdict(), TrialVerdict::NotBetter);
    assert_eq!(
        trial(&[(10_000, 10_300); 4]).verdict(),
        TrialVerdict::Better
    );
}

#[test]
fn what_stays_unclear_is_not_resolved() {
    let pairs: Vec<(u64, u64)> = (0..TRIAL_PAIRS)
        .map(|at| if at % 2 == 0 { (100, 300) } else { (300, 100) })
        .collect();
    let last = pairs.len() - 1;
    assert_eq!(trial(&pairs[..last]).verdict(), TrialVerdict::Open);
    assert_eq!(trial(&pairs).verdict(), TrialVerdict::Unresolved);
}

#[test]
fn nothing_done_at_all_is_equal() {
    let pairs = [(0, 0); 3];
    assert_eq!(trial(&pairs).verdict(), TrialVerdict::NotBetter);
    // What acts does nothing: no bound above.
    let interval = trial(&[(0, 100); 3]).interval().expect("three");
    assert!(interval.high.is_infinite());
}

/// xorshift64, for noise that a seed replays.
fn noise(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 40
}

/// Equal policies, a fifth of noise: a change that is no gain comes from chance alone, and is rare although each pair is tested.
#[test]
fn equal_policies_are_seldom_taken_for_better() {
    let mut state = 88_172_645_463_325_252;
    let mut wrong = 0;
    for _ in 0..20_000 {
        let mut trial = Trial::default();
        while trial.verdict() == TrialVerdict::Open {
            let mut one = || 1_000_000 + noise(&mut state) % 400_000;
            let (acting, tried) = (one(), one());
            trial.add(acting, tried);
        }
        wrong += u32::from(trial.verdict() == TrialVerdict::Better);
    }
    assert!(wrong < 600, "{wrong} of 20,000");
}

/// Epochs of a load that comes and goes differ by two fifths and more: a set that is as good is not dropped for its first pairs, one that
/// does half is.
#[test]
fn first_pairs_drop_what_does_harm_and_hardly_anything_else() {
    let dropped = |permille: u64| {
        let mut state = 88_172_645_463_325_252;
        let early = (0..10_000).filter(|_| {
            let mut trial = Trial::default();
            while trial.verdict() == TrialVerdict::Open && trial.pairs() < 4 {
                let mut one = || 600_000 + noise(&mut state) % 800_000;
                let (acting, tried) = (one(), one() * permille / 1_000);
                trial.add(acting, tried);
            }
            trial.pairs() < 4 && trial.verdict() == TrialVerdict::NotBetter
        });
        early.count()
    };
    let (equal, half) = (dropped(1_000), dropped(500));
    println!("of 10,000 dropped early: equal {equal}, half {half}");
    assert!(equal < 400, "{equal}");
    assert!(half > 7_500, "{half}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_interval_holds_its_middle(
        pairs in prop::collection::vec((0..1u64 << 46, 0..1u64 << 46), 2..=12)
    ) {
        let interval = trial(&pairs).interval().expect("two or more");
        prop_assert!(interval.low <= interval.middle && interval.middle <= interval.high);
    }
}
