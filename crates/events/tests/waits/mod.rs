// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits and switches by hand.

use unspin_abi as abi;
use unspin_events::{ClockSample, Event, TscClock, What};

/// 2 cycles a nanosecond; TSC 1,000 is 5,000 ns.
pub fn clock() -> TscClock {
    let sample = |tsc, ns| ClockSample { tsc, ns };
    TscClock::new(sample(1_000, 5_000), sample(21_000, 15_000)).expect("both go forward")
}

/// An event of VM 3.
pub fn event(vcpu: u16, time_ns: u64, what: What) -> Event {
    Event {
        time_ns,
        vm: Some(3),
        vcpu: Some(vcpu),
        thread: 100 + u32::from(vcpu),
        cpu: 0,
        what,
    }
}

/// The vCPU gets a pCPU.
pub fn switch_in() -> What {
    What::SwitchIn {
        previous_thread: 0,
        previous_vm: None,
    }
}

/// It loses it.
pub fn switch_out(runnable: bool) -> What {
    What::SwitchOut {
        next_thread: 0,
        next_vm: None,
        runnable,
        preempt: runnable,
        mode: None,
        exit_code: None,
        guest_rip: None,
    }
}

/// A wait for a lock, as a guest logs it.
pub fn raw_wait(begin: u64, stall: u64, end: u64, lock: u16, holder: u8) -> abi::unspin_guest_wait {
    abi::unspin_guest_wait {
        begin_tsc: begin,
        end_tsc: end,
        released_tsc: end,
        stall_tsc: stall,
        lock,
        kind: abi::UNSPIN_WAIT_LOCK as u8,
        holder_at_stall: holder,
        ..Default::default()
    }
}

/// The holder of a free lock.
pub const NOBODY: u8 = abi::UNSPIN_NOBODY as u8;
