// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of VMs of 8 vCPUs each, with arguments that vary as real ones do.

use unspin_events::{Event, GuestMode, What};

/// One vCPU's event: its thread is number 1000 and on.
pub fn of_vcpu(vcpu: u16, time_ns: u64, cpu: u16, what: What) -> Event {
    Event {
        time_ns,
        vm: Some(u32::from(vcpu) / 8),
        vcpu: Some(vcpu % 8),
        thread: thread_of(vcpu),
        cpu,
        what,
    }
}

/// That of a vCPU.
pub fn thread_of(vcpu: u16) -> u32 {
    1_000 + u32::from(vcpu)
}

/// A pause-loop exit after so long in the guest; `mixed` has high bits at random.
pub fn pause_exit(mixed: u64, inside_ns: u32) -> What {
    What::PauseExit {
        guest_rip: Some(0xffff_ffff_8100_0000 + (mixed >> 60)),
        mode: Some(GuestMode::Kernel),
        window: Some(3_000),
        inside_ns,
        other_exits: 0,
        interrupt_exits: 0,
    }
}

/// That vCPU's directed yield to one of a lower number.
pub fn yield_to(vcpu: u16) -> What {
    What::YieldTo {
        result: 1,
        target_vcpu: Some(vcpu / 2),
        target_thread: thread_of(vcpu) / 2,
    }
}
