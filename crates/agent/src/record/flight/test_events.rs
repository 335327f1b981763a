// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of VMs with one vCPU each, for the tests of this folder.

use unspin_events::{Event, GuestMode, What};

pub(super) const MS: u64 = 1_000_000;

/// Of that VM's vCPU.
pub(super) fn event(time_ns: u64, vm: u32, what: What) -> Event {
    Event {
        time_ns,
        vm: Some(vm),
        vcpu: Some(0),
        thread: u32::MAX - vm, // no thread of this machine
        cpu: 0,
        what,
    }
}

/// It is switched in.
pub(super) fn switch_in(time_ns: u64, vm: u32) -> Event {
    let what = What::SwitchIn {
        previous_thread: 0,
        previous_vm: None,
    };
    event(time_ns, vm, what)
}

/// It is switched in, spins for `spin_ms` in windows of 1 ms, and is preempted at `end_ns`.
pub(super) fn slice(begin_ns: u64, end_ns: u64, vm: u32, spin_ms: u64) -> Vec<Event> {
    let exit = What::PauseExit {
        guest_rip: Some(0xffff_ffff_8100_0000),
        mode: Some(GuestMode::Kernel),
        window: Some(3_000),
        inside_ns: MS as u32,
        other_exits: 0,
        interrupt_exits: 0,
    };
    let switch_out = What::SwitchOut {
        next_thread: 0,
        next_vm: None,
        runnable: true,
        preempt: true,
        mode: None,
        exit_code: None,
        guest_rip: None,
    };
    let exits = (1..=spin_ms).map(|ms| event(begin_ns + ms * MS, vm, exit));
    let mut events = vec![switch_in(begin_ns, vm)];
    events.extend(exits);
    events.push(event(end_ns, vm, switch_out));
    events
}
