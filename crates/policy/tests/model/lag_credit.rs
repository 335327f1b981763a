// SPDX-License-Identifier: MIT OR Apache-2.0
//! The proposal of June 2026: which entity gets lag, how much at most, and how often a reschedule is forced.

use proptest::prelude::*;
use unspin_policy::{LAG_MARGIN_NS, LagLevel, lag_credit_forces};

fn level(average_vtime: u64, target_vtime: u64) -> LagLevel {
    LagLevel {
        average_vtime,
        target_vtime,
        limit_vtime: 6_000_000,
        margin_vtime: LAG_MARGIN_NS,
        runnable: 4,
    }
}

#[test]
fn only_who_is_not_eligible() {
    assert_eq!(
        level(1000, 1000).credited_vtime(),
        1000,
        "the average itself is eligible"
    );
    assert_eq!(
        level(1000, 500).credited_vtime(),
        500,
        "its lag is its own, however little"
    );
    assert_eq!(level(10_000_000, 10_000_001).credited_vtime(), 9_600_000);
    // virtual times wrap around
    assert_eq!(level(u64::MAX, 5).credited_vtime(), u64::MAX - 400_000);
    assert_eq!(level(5, u64::MAX).credited_vtime(), u64::MAX);
}

#[test]
fn grows_with_the_queue_up_to_the_limit() {
    let lag = |runnable| {
        let level = LagLevel {
            runnable,
            ..level(10_000_000, 20_000_000)
        };
        10_000_000 - level.credited_vtime()
    };
    assert_eq!(
        [lag(2), lag(8), lag(60), lag(61), lag(u32::MAX)],
        [200_000, 800_000, 6_000_000, 6_000_000, 6_000_000]
    );
}

#[test]
fn forced_once_per_6_ms() {
    assert!(lag_credit_forces(0, None));
    assert!(!lag_credit_forces(0, Some(0)));
    assert!(!lag_credit_forces(5_999_999, Some(0)));
    assert!(lag_credit_forces(6_000_000, Some(0)));
}

proptest! {
    /// Eligible afterwards, never with more lag than the limit, and never moved back.
    #[test]
    fn bounded(
        average in any::<u64>(), ahead in 0u64..1 << 62, behind in any::<bool>(), limit in 1u64..1 << 62,
        margin in 1u64..1 << 62, runnable in 1u32..
    ) {
        let target = if behind { average.wrapping_sub(ahead) } else { average.wrapping_add(ahead) };
        let level = LagLevel { average_vtime: average, target_vtime: target, limit_vtime: limit, margin_vtime: margin, runnable };
        let credited = level.credited_vtime();
        let lag = average.wrapping_sub(credited) as i64;
        prop_assert!(lag >= 0, "eligible");
        prop_assert!(credited == target || (lag > 0 && lag as u64 <= limit));
        prop_assert!(target.wrapping_sub(credited) as i64 >= 0, "only ever earlier");
        let wide = (u128::from(margin) * u128::from(runnable)).min(u128::from(limit));
        prop_assert!(credited == target || lag as u128 == wide);
    }
}
