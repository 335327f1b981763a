// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns that repeat an event's arguments for people: who else took part, where the guest was.

use unspin_events::{GuestMode, What};

/// What the arguments of an event say, under names that all kinds share. Fields that its kind does not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// Thread that left or follows, that woke, or that was to be yielded to.
    pub other_thread: Option<u32>,
    /// VM of that thread.
    pub other_vm: Option<u32>,
    /// vCPU that was to be yielded to, or that receives an interrupt.
    pub other_vcpu: Option<u16>,
    /// Where the guest was.
    pub guest_mode: Option<&'static str>,
    /// Whether the thread that left its pCPU could have gone on.
    pub runnable: Option<bool>,
}

impl Details {
    pub fn of(what: &What) -> Details {
        let none = Details::default();
        match *what {
            What::SwitchIn {
                previous_thread,
                previous_vm,
            } => Details {
                other_thread: Some(previous_thread),
                other_vm: previous_vm,
                ..none
            },
            What::SwitchOut {
                next_thread,
                next_vm,
                runnable,
                mode,
                ..
            } => Details {
                other_thread: Some(next_thread),
                other_vm: next_vm,
                guest_mode: mode.map(word),
                runnable: Some(runnable),
                ..none
            },
            What::SchedWakeup { waker_thread } => Details {
                other_thread: Some(waker_thread),
                ..none
            },
            What::PauseExit { mode, .. } => Details {
                guest_mode: mode.map(word),
                ..none
            },
            What::YieldTo {
                target_vcpu,
                target_thread,
                ..
            } => Details {
                other_thread: Some(target_thread),
                other_vcpu: target_vcpu,
                ..none
            },
            What::Ipi { receiver_vcpu, .. } => Details {
                other_vcpu: Some(receiver_vcpu),
                ..none
            },
            _ => none,
        }
    }
}

fn word(mode: GuestMode) -> &'static str {
    match mode {
        GuestMode::User => "user",
        GuestMode::Kernel => "kernel",
    }
}
