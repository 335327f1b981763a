// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 17 in integers: APPLE's sums, and unknown values.

use proptest::prelude::*;
use unspin_policy::{
    EPOCH_EXITS, Epoch, PAUSE_LEAST_PS, window_is_honoured, window_is_quicker, window_unit_ps,
};

fn epoch(window: Option<u32>, handling_ns: u64, cpu_ns: u64) -> Epoch {
    let mut epoch = Epoch::default();
    for number in 1..=EPOCH_EXITS {
        assert_eq!(epoch.add_exit(window), number == EPOCH_EXITS);
        epoch.add_handling(handling_ns);
    }
    epoch.add_cpu(cpu_ns);
    epoch
}

/// 1,000 windows of 8,192 cycles at 2.4 GHz (APPLE, section IV) are 3.41 ms; with 2 us of handling each, 5.41 ms.
#[test]
fn windows_and_handling_by_cpu_time() {
    let cycle_ps = 1_000_000_000 / 2_400_000;
    let epoch = epoch(Some(8192), 2_000, 54_100_000);
    let ppm = epoch.inefficiency_ppm(Some(cycle_ps)).expect("known");
    assert!((99_900..=100_100).contains(&ppm), "{ppm}");
    assert_eq!(epoch.mean_window(), Some(8192.0));
    assert_eq!(epoch.window_units(), Some(8_192_000));
    let of_sums = Epoch::of_sums(1_000, 8_192_000, 2_000_000, 54_100_000);
    assert_eq!(of_sums, epoch);
}

#[test]
fn what_is_not_known_is_not_zero() {
    assert_eq!(epoch(None, 1, 1_000).inefficiency_ppm(Some(400)), None);
    assert_eq!(epoch(Some(1), 1, 0).inefficiency_ppm(Some(400)), None);
    assert_eq!(epoch(Some(1), 1, 1_000).inefficiency_ppm(None), None);
    assert_eq!(epoch(Some(1), 1, 1_000).inefficiency_ppm(Some(0)), None);
    assert_eq!(Epoch::default().mean_window(), None);
    let mut mixed = Epoch::default();
    mixed.add_exit(Some(1));
    mixed.add_exit(None);
    mixed.add_cpu(1_000);
    assert_eq!(mixed.inefficiency_ppm(Some(400)), None);
    assert_eq!(mixed.mean_window(), None);
    assert_eq!(mixed.window_units(), None);
}

#[test]
fn a_window_that_is_ignored() {
    // Stock QEMU: an exit at each PAUSE, some 100 ns apart, although the window is 3,000 PAUSEs.
    assert!(!window_is_honoured(100, 3_000, PAUSE_LEAST_PS));
    assert!(window_is_honoured(3_000, 3_000, PAUSE_LEAST_PS));
    assert!(window_is_honoured(0, 0, PAUSE_LEAST_PS));
    assert!(!window_is_honoured(u64::MAX, u64::MAX, PAUSE_LEAST_PS));
}

#[test]
fn the_time_of_a_unit_is_measured_where_windows_are_honoured() {
    assert_eq!(
        window_unit_ps(390_000, 3_000, PAUSE_LEAST_PS),
        Some(130_000)
    );
    assert_eq!(
        window_unit_ps(3_000, 3_000, PAUSE_LEAST_PS),
        Some(PAUSE_LEAST_PS)
    );
    assert_eq!(
        window_unit_ps(2_999, 3_000, PAUSE_LEAST_PS),
        None,
        "ignored"
    );
    assert_eq!(window_unit_ps(0, 0, PAUSE_LEAST_PS), None, "nothing seen");
    assert_eq!(
        window_unit_ps(u64::MAX, 1, PAUSE_LEAST_PS),
        None,
        "does not fit"
    );
}

/// 100 PAUSEs in 10 us in the guest are quicker per PAUSE than 200 in 30 us; neither is if 1 ms of work came first.
#[test]
fn the_window_that_was_spun_through_quickest() {
    let mut quickest = (0, 0);
    let mut see = |inside_ns, units| {
        if window_is_quicker(inside_ns, units, quickest.0, quickest.1) {
            quickest = (inside_ns, units);
        }
        quickest
    };
    assert_eq!(see(0, 100), (0, 0), "not measured");
    assert_eq!(see(1_000, 0), (0, 0), "no window");
    assert_eq!(see(30_000, 200), (30_000, 200), "the first");
    assert_eq!(see(1_000_000, 100), (30_000, 200));
    assert_eq!(see(10_000, 100), (10_000, 100));
    assert_eq!(see(20_000, 200), (10_000, 100), "a tie keeps it");
    assert_eq!(see(19_999, 200), (19_999, 200));
    // An unknown time, or one of 4 s and more, is no measurement, whatever the window is.
    let most = u64::from(u32::MAX);
    for unknown in [
        (most, most),
        (1, most),
        (most, 1),
        (u64::MAX, 1),
        (1, u64::MAX),
    ] {
        assert_eq!(see(unknown.0, unknown.1), (19_999, 200), "{unknown:?}");
    }
    assert!(window_is_quicker(most - 1, 1, 0, 0));
    assert!(window_is_quicker(most - 2, most - 1, most - 1, most - 1));
}

proptest! {
    #[test]
    fn as_in_wide_arithmetic_or_unknown(window in 0u32..u32::MAX, handling in any::<u64>(), cpu in 1u64.., unit in 1u64..u64::MAX) {
        let mut epoch = Epoch::default();
        epoch.add_exit(Some(window));
        epoch.add_handling(handling);
        epoch.add_cpu(cpu);
        let spinning = u128::from(window) * u128::from(unit) / 1000;
        let exact = (spinning + u128::from(handling)) * 1_000_000 / u128::from(cpu);
        match epoch.inefficiency_ppm(Some(unit)) {
            Some(ppm) => prop_assert_eq!(u128::from(ppm), exact),
            None => prop_assert!(
                u128::from(window) * u128::from(unit) > u128::from(u64::MAX)
                    || (spinning + u128::from(handling)) * 1_000_000 > u128::from(u64::MAX) - 1
            ),
        }
    }
}
