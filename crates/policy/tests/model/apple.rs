// SPDX-License-Identifier: MIT OR Apache-2.0
//! APPLE: Algorithm 1 step by step, Figure 2's three scenarios, ties, bounds, and where it converges on convex costs.

use proptest::prelude::*;
use unspin_policy::{Apple, AppleEpoch, AppleRule, EPOCH_EXITS, Epoch, Vendor};

/// Runs a round with these inefficiencies (E1, E2, E3) and returns the windows that were in force.
fn round(apple: &mut Apple, inefficiencies: [Option<u64>; 3]) -> [u32; 3] {
    inefficiencies.map(|ppm| {
        let window = apple.window();
        apple.epoch_over(ppm);
        window
    })
}

fn known(ppm: [u64; 3]) -> [Option<u64>; 3] {
    ppm.map(Some)
}

/// Algorithm 1 with the parameters of section IV.
#[test]
fn algorithm_1() {
    let mut apple = Apple::new(AppleRule::new(Vendor::Intel));
    assert_eq!(apple.desired(), 8192);
    assert_eq!(apple.epoch(), AppleEpoch::Desired);
    assert_eq!(round(&mut apple, known([30, 20, 40])), [8192, 9216, 7168]);
    assert_eq!(apple.desired(), 9216);
    assert_eq!(round(&mut apple, known([20, 30, 10])), [9216, 10240, 8192]);
    assert_eq!(apple.desired(), 8192);
    assert_eq!(round(&mut apple, known([10, 20, 30])), [8192, 9216, 7168]);
    assert_eq!(apple.desired(), 8192);
    apple.epoch_over(Some(1));
    assert_eq!(apple.epoch(), AppleEpoch::More);
    apple.epoch_over(Some(1));
    assert_eq!(apple.epoch(), AppleEpoch::Less);
}

/// Ruling 18: ties keep the window.
#[test]
fn ties_keep_the_window() {
    for tie in [[10, 10, 10], [10, 10, 20], [10, 20, 10], [20, 10, 10]] {
        let mut apple = Apple::new(AppleRule::new(Vendor::Intel));
        round(&mut apple, known(tie));
        assert_eq!(apple.desired(), 8192, "{tie:?}");
    }
}

#[test]
fn what_is_not_known_is_not_better() {
    let cases = [
        ([None, Some(1), Some(2)], 8192),
        ([Some(3), None, Some(2)], 7168),
        ([Some(3), Some(2), None], 9216),
        ([Some(3), None, None], 8192),
        ([None; 3], 8192),
    ];
    for (inefficiencies, desired) in cases {
        let mut apple = Apple::new(AppleRule::new(Vendor::Intel));
        round(&mut apple, inefficiencies);
        assert_eq!(apple.desired(), desired, "{inefficiencies:?}");
    }
}

/// Ruling 18: at a bound the duplicate epoch is run too; a step that would pass a bound ends at it.
#[test]
fn bounds() {
    let rule = AppleRule::with(4096, 4096, 6000, 1024).expect("in order");
    let mut apple = Apple::new(rule);
    assert_eq!(round(&mut apple, known([3, 2, 1])), [4096, 5120, 4096]);
    // less was "better" by chance: the window stays the same
    assert_eq!(apple.desired(), 4096);
    round(&mut apple, known([2, 1, 3]));
    assert_eq!(round(&mut apple, known([2, 1, 3])), [5120, 6000, 4096]);
    assert_eq!(round(&mut apple, known([2, 1, 3])), [6000, 6000, 4976]);
    assert_eq!(apple.desired(), 6000);
    assert_eq!(
        (rule.lower(), rule.upper(), rule.delta()),
        (4096, 6000, 1024)
    );

    assert_eq!(AppleRule::with(0, 0, 10, 1), None);
    assert_eq!(AppleRule::with(4, 5, 10, 1), None);
    assert_eq!(AppleRule::with(11, 5, 10, 1), None);
    assert_eq!(AppleRule::with(5, 5, 10, 0), None);
    // no sum or difference overflows 32 bits
    let widest = AppleRule::with(u32::MAX, 1, u32::MAX, u32::MAX).expect("in order");
    assert_eq!(
        round(&mut Apple::new(widest), known([1, 2, 3])),
        [u32::MAX, u32::MAX, 1]
    );
}

/// Ruling 20: 3,000 PAUSEs for 4,096 cycles.
#[test]
fn amd_is_scaled() {
    let rule = AppleRule::new(Vendor::Amd);
    assert_eq!(Apple::new(rule).window(), 6000);
    assert_eq!(
        (rule.lower(), rule.upper(), rule.delta()),
        (3000, 24_000, 750)
    );
}

/// Figure 2: a vCPU waits for a lock twice: while the holder runs (normal spinning) and while it is preempted. When the
/// window is over the vCPU is switched out. Returns exits and wasted cycles of the two waits.
fn two_waits(window: u64, normal: u64, preempted: u64, switch: u64) -> ((u64, u64), (u64, u64)) {
    // With a running holder the wait continues after each switch; a preempted holder runs again after one spin.
    let early = (normal - 1) / window;
    let late = u64::from(preempted > window);
    (
        (early, early * (window + switch)),
        (late, late * (window + switch)),
    )
}

/// Figure 2 (A), (B) and (C): T1 is adequate, T2 too low, T3 too high.
#[test]
fn figure_2() {
    let (normal, preempted, switch) = (7000, 2_000_000, 2000);
    let [adequate, low, high] =
        [8192, 2048, 16384].map(|window| two_waits(window, normal, preempted, switch));
    assert_eq!(adequate.0, (0, 0), "(A): as on a physical machine");
    assert_eq!(high.0, (0, 0), "(C): as in (A)");
    assert_eq!(low.0.0, 3, "(B): stopped although the holder runs");
    let waste = |waits: ((u64, u64), (u64, u64))| waits.0.1 + waits.1.1;
    assert!(waste(low) > waste(adequate), "wasteful switches");
    assert!(waste(high) > waste(adequate), "wasteful spinning");
    assert_eq!(adequate.1, (1, 8192 + switch));
    assert_eq!(high.1, (1, 16384 + switch));
}

/// Inefficiency of an epoch of such waits: normal ones of 1 to 8,000 cycles, uniformly distributed, and one in 16 for a
/// preempted holder; at 2.4 GHz as in section IV.
fn inefficiency(window: u32) -> Option<u64> {
    let (cycle_ps, switch_ns) = (416, 800);
    let mut epoch = Epoch::default();
    let mut waits = 0;
    loop {
        waits += 1;
        let (early, late) = two_waits(u64::from(window), waits * 3001 % 8000 + 1, 2_000_000, 0);
        let exits = if waits % 16 == 0 { late.0 } else { early.0 };
        epoch.add_cpu(2000);
        for _ in 0..exits {
            epoch.add_handling(switch_ns);
            epoch.add_cpu(u64::from(window) * cycle_ps / 1000 + switch_ns);
            if epoch.add_exit(Some(window)) {
                assert_eq!(epoch.exits(), EPOCH_EXITS);
                return epoch.inefficiency_ppm(Some(cycle_ps));
            }
        }
    }
}

/// The same waits, measured by inefficiency.h: from a low and from a high start APPLE converges to the window that
/// covers normal spinning and no more.
#[test]
fn figure_2_measured() {
    let fixed: Vec<u32> = (4096..=32768).step_by(1024).collect();
    let best = fixed.iter().min_by_key(|window| inefficiency(**window));
    assert_eq!(best, Some(&8192));
    for initial in [4096, 8192, 16384, 32768] {
        let mut apple = Apple::new(AppleRule::with(initial, 4096, 32768, 1024).expect("in order"));
        for _ in 0..3 * 40 {
            apple.epoch_over(inefficiency(apple.window()));
        }
        assert!(
            apple.desired().abs_diff(8192) <= 1024,
            "{} from {initial}",
            apple.desired()
        );
    }
}

proptest! {
    /// On a convex cost it converges to within one delta of the best window between the bounds.
    #[test]
    fn within_one_delta_on_a_convex_cost(
        best in 1u32..60_000, left in 1u64..1000, right in 1u64..1000, square in any::<bool>(),
        lower in 1u32..8000, span in 0u32..40_000, start in 0u32..40_000, delta in 64u32..4096
    ) {
        let upper = lower + span;
        let initial = lower + start.min(span);
        let cost = |window: u32| {
            let (far, slope) = match window.checked_sub(best) {
                Some(above) => (u64::from(above), right),
                None => (u64::from(best - window), left),
            };
            100 + slope * if square { far * far } else { far }
        };
        let rule = AppleRule::with(initial, lower, upper, delta).expect("in order");
        let mut apple = Apple::new(rule);
        let rounds = span / delta + 2;
        for epoch in 0..3 * (rounds + 6) {
            prop_assert!((lower..=upper).contains(&apple.window()));
            if epoch >= 3 * rounds {
                prop_assert!(apple.desired().abs_diff(best.clamp(lower, upper)) <= delta);
            }
            let ppm = cost(apple.window());
            apple.epoch_over(Some(ppm));
        }
    }
}
