// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 23: the parts of a blocked waiter's wake-up add up to the whole, for any clocks and any state of the host.

use proptest::prelude::*;
use unspin_policy::{Wakeup, WakeupParts};

/// 2 GHz; woken at cycle 1,000,000, when 5,000 ns had been stolen.
fn woken() -> Wakeup {
    Wakeup {
        woken_tsc: 1_000_000,
        woken_stolen_ns: 5_000,
        now_tsc: 1_100_000,
        now_stolen_ns: 5_000,
        tsc_khz: Some(2_000_000),
        ..Wakeup::default()
    }
}

fn parts(exit_cycles: u64, host_cycles: u64, guest_cycles: u64) -> WakeupParts {
    WakeupParts {
        exit_cycles,
        host_cycles,
        guest_cycles,
    }
}

#[test]
fn a_task_of_a_running_vcpu_waits_for_others_and_for_the_host() {
    assert_eq!(woken().split(), parts(0, 0, 100_000));
    let preempted = Wakeup {
        now_stolen_ns: 15_000,
        ..woken()
    };
    assert_eq!(preempted.split(), parts(0, 20_000, 80_000));
}

#[test]
fn a_halted_vcpu_is_woken_and_queued_before_its_task_can_run() {
    let halted = Wakeup {
        halt_end_tsc: 1_060_000,
        halt_end_stolen_ns: 25_000,
        now_stolen_ns: 26_000,
        ..woken()
    };
    assert_eq!(halted.split(), parts(20_000, 42_000, 38_000));
    let earlier = Wakeup {
        halt_end_tsc: 999_999,
        ..halted
    };
    assert_eq!(earlier.split(), parts(0, 42_000, 58_000), "not in HLT");
}

#[test]
fn what_was_stolen_before_the_wake_up_is_not_of_it() {
    let queued = Wakeup {
        halt_end_tsc: 1_060_000,
        halt_end_stolen_ns: 5_005_000,
        now_stolen_ns: 5_005_000,
        ..woken()
    };
    assert_eq!(queued.split(), parts(0, 60_000, 40_000));
    let off = Wakeup {
        now_stolen_ns: 5_005_000,
        ..woken()
    };
    assert_eq!(off.split(), parts(0, 100_000, 0));
    let unknown = Wakeup {
        tsc_khz: None,
        ..off
    };
    assert_eq!(unknown.split(), parts(0, 0, 100_000));
}

proptest! {
    #[test]
    fn the_parts_are_always_the_whole(
        woken_tsc: u64, woken_stolen_ns: u64, halt_end_tsc: u64, halt_end_stolen_ns: u64, now_tsc: u64,
        now_stolen_ns: u64, tsc_khz: Option<u64>, near in 0u64..1_000_000, halt in 0u64..1_000_000,
    ) {
        let any = Wakeup {
            woken_tsc, woken_stolen_ns, halt_end_tsc, halt_end_stolen_ns, now_tsc, now_stolen_ns, tsc_khz,
        };
        let likely = Wakeup {
            now_tsc: woken_tsc.saturating_add(near),
            halt_end_tsc: woken_tsc.saturating_add(halt),
            ..any
        };
        for wakeup in [any, likely] {
            let parts = wakeup.split();
            let whole = u128::from(wakeup.now_tsc.saturating_sub(wakeup.woken_tsc));
            let sum = [parts.exit_cycles, parts.host_cycles, parts.guest_cycles].map(u128::from);
            prop_assert_eq!(sum.iter().sum::<u128>(), whole);
        }
    }
}
