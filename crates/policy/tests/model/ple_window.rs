// SPDX-License-Identifier: MIT OR Apache-2.0
//! Window control: KVM's defaults and arithmetic (arch/x86/kvm/x86.h, 7.2), and the controls that leave the window as
//! it is.

use proptest::prelude::*;
use unspin_policy::{Control, DEFAULT_GAP_CYCLES, PauseHardware, Vendor, WindowRule};

/// Windows after each of `exits` exits in a row.
fn grown(rule: &WindowRule, exits: usize) -> Vec<u32> {
    let mut window = rule.at_start();
    (0..exits)
        .map(|_| {
            window = rule.after_exit(window, 1);
            window
        })
        .collect()
}

#[test]
fn kvm_doubles_and_resets() {
    let intel = WindowRule::new(Control::Kvm, Vendor::Intel);
    assert_eq!(intel.at_start(), 4096);
    assert_eq!(grown(&intel, 3), [8192, 16384, 32768]);
    assert_eq!(intel.after_switch(32768), 4096);
    // UINT_MAX, not a wrap.
    assert_eq!(grown(&intel, 21).last(), Some(&u32::MAX));

    let amd = WindowRule::new(Control::Kvm, Vendor::Amd);
    assert_eq!(amd.at_start(), 3000);
    assert_eq!(grown(&amd, 6), [6000, 12000, 24000, 48000, 65535, 65535]);
    assert_eq!(amd.after_switch(65535), 3000);
}

/// APPLE, section II.B and footnote 2: the speed of growing and shrinking can be set.
#[test]
fn steps_are_factors_below_the_base_and_differences_above() {
    let rule = WindowRule::new(Control::Kvm, Vendor::Intel);
    let factors = rule.with_steps(3, 2, 100_000);
    assert_eq!(grown(&factors, 3), [12288, 36864, 100_000]);
    assert_eq!(factors.after_switch(100_000), 50_000);
    assert_eq!(factors.after_switch(5_000), 4096);
    let differences = rule.with_steps(4096, 5000, 20_000);
    assert_eq!(grown(&differences, 4), [8192, 12288, 16384, 20_000]);
    assert_eq!(differences.after_switch(20_000), 15_000);
    assert_eq!(differences.after_switch(8_000), 4096);
    // unsigned, as in the kernel
    assert_eq!(differences.after_switch(4_999), u32::MAX);
    // a modifier of 1 leaves the window as it is: so KVM is loaded if another module sets windows
    let still = rule.with_steps(1, 1, u32::MAX);
    assert_eq!(
        (grown(&still, 2), still.after_switch(7000)),
        (vec![4096, 4096], 7000)
    );
}

#[test]
fn only_kvm_of_today_and_apple_change_anything() {
    for vendor in [Vendor::Intel, Vendor::Amd] {
        for control in Control::ALL {
            let rule = WindowRule::new(control, vendor).with_base(2000);
            let expected = match control {
                Control::Kvm => (10_000, 2000),
                Control::Apple => (9216, 5000),
                _ => (5000, 5000),
            };
            let found = (rule.after_exit(5000, 9216), rule.after_switch(5000));
            assert_eq!(found, expected, "{} {vendor:?}", control.name());
            assert_eq!(rule.at_start(), 2000);
            assert_eq!(rule.control(), control);
            let hardware = match control {
                Control::Off => PauseHardware::OFF,
                _ => PauseHardware::new(vendor, 128, 5000),
            };
            assert_eq!(rule.hardware(DEFAULT_GAP_CYCLES, 5000), hardware);
        }
    }
}

proptest! {
    #[test]
    fn grows_up_to_the_maximum_and_shrinks_down_to_the_base(
        window in 1u32..65_535, base in 1u32..65_535, grow in 0u32..70_000, shrink in 0u32..70_000, max in 1u32..
    ) {
        let rule = WindowRule::new(Control::Kvm, Vendor::Intel).with_base(base).with_steps(grow, shrink, max);
        let (window_wide, base_wide, grow_wide) = (u64::from(window), u64::from(base), u64::from(grow));
        let grown = match grow {
            0 => base_wide,
            _ if grow < base => (window_wide * grow_wide).min(u64::from(max)),
            _ => (window_wide + grow_wide).min(u64::from(max)),
        };
        prop_assert_eq!(u64::from(rule.after_exit(window, 0)), grown);
        let shrunk = match shrink {
            0 => base,
            _ if shrink < base => window / shrink,
            _ => window.wrapping_sub(shrink),
        };
        prop_assert_eq!(rule.after_switch(window), shrunk.max(base));
    }
}
