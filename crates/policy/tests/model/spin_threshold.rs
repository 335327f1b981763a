// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which exits make an epoch: pause-loop exits where the window is set, ends of the guest's own waits where its
//! threshold is set.

use unspin_policy::{SpinBound, WaitExit};

const EXITS: [WaitExit; 5] = [
    WaitExit::None,
    WaitExit::PauseLoop,
    WaitExit::Halt,
    WaitExit::Yield,
    WaitExit::Help,
];

/// The exits that count, for a vCPU of which this is known.
fn counted(bound: SpinBound, waits_for_lock: Option<bool>) -> Vec<WaitExit> {
    let exits = EXITS.into_iter();
    exits
        .filter(|exit| bound.counts(*exit, waits_for_lock))
        .collect()
}

#[test]
fn a_windows_exits_are_the_hardwares() {
    for waits in [None, Some(false), Some(true)] {
        let exits = counted(SpinBound::Window, waits);
        assert_eq!(exits, [WaitExit::PauseLoop], "{waits:?}");
    }
}

/// A HLT of an idle vCPU and the yield after an IPI end no wait for a lock; a call for help itself shows that the vCPU
/// waits.
#[test]
fn a_thresholds_exits_are_the_guests() {
    let all = [WaitExit::Halt, WaitExit::Yield, WaitExit::Help];
    assert_eq!(counted(SpinBound::Threshold, Some(true)), all);
    for waits in [None, Some(false)] {
        let exits = counted(SpinBound::Threshold, waits);
        assert_eq!(exits, [WaitExit::Help], "{waits:?}");
    }
}
