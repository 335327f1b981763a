// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of one VM, made by hand. Times are microseconds; a pause-loop window takes 10 of them.
#![allow(dead_code)] // each test uses some of it

use unspin_events::{Event, GuestMode, IpiForm, What};

/// The PAUSE of the lock's loop, of the function call's, and an address far from both.
pub const LOCK: u64 = 0x2000;
pub const CALL: u64 = 0x9000;
pub const ELSEWHERE: u64 = 0x5_0000;

#[derive(Default)]
pub struct Stream {
    pub events: Vec<Event>,
}

impl Stream {
    pub fn push(&mut self, at_us: u64, vcpu: u16, cpu: u16, what: What) {
        self.events.push(Event {
            time_ns: at_us * 1_000,
            vm: Some(0),
            vcpu: Some(vcpu),
            thread: 100 + u32::from(vcpu),
            cpu,
            what,
        });
    }

    /// Gets a CPU.
    pub fn comes(&mut self, at_us: u64, vcpu: u16, cpu: u16) {
        let what = What::SwitchIn {
            previous_thread: 7,
            previous_vm: None,
        };
        self.push(at_us, vcpu, cpu, what);
    }

    /// Leaves it: preempted in that mode at that address; asleep when `mode` is `Err`.
    pub fn leaves(
        &mut self,
        at_us: u64,
        vcpu: u16,
        cpu: u16,
        mode: Result<Option<GuestMode>, ()>,
        rip: u64,
    ) {
        let what = What::SwitchOut {
            next_thread: 7,
            next_vm: None,
            runnable: mode.is_ok(),
            preempt: mode.is_ok(),
            mode: mode.unwrap_or(Some(GuestMode::Kernel)),
            exit_code: None,
            guest_rip: Some(rip),
        };
        self.push(at_us, vcpu, cpu, what);
    }

    /// A pause-loop exit after so many microseconds in the guest.
    pub fn pauses(&mut self, at_us: u64, vcpu: u16, cpu: u16, rip: u64, inside_us: u32) {
        let what = What::PauseExit {
            guest_rip: Some(rip),
            mode: Some(GuestMode::Kernel),
            window: Some(200),
            inside_ns: inside_us * 1_000,
            other_exits: 0,
            interrupt_exits: 0,
        };
        self.push(at_us, vcpu, cpu, what);
    }

    /// The guest is entered again.
    pub fn enters(&mut self, at_us: u64, vcpu: u16, cpu: u16) {
        let what = What::PauseEntry {
            outside_ns: 2_000,
            handling_ns: 2_000,
        };
        self.push(at_us, vcpu, cpu, what);
    }

    pub fn sends(&mut self, at_us: u64, vcpu: u16, cpu: u16, receiver_vcpu: u16) {
        let what = What::Ipi {
            receiver_vcpu,
            vector: 0x21,
            delivery_mode: 0,
            form: IpiForm::Physical,
            destination: None,
        };
        self.push(at_us, vcpu, cpu, what);
    }

    /// Spins on from `at_us` for so many windows of 10, each followed by 2 of handling. When it is in the guest again.
    pub fn spins(&mut self, at_us: u64, vcpu: u16, cpu: u16, rip: u64, windows: u64) -> u64 {
        let mut now_us = at_us;
        for _ in 0..windows {
            self.pauses(now_us + 10, vcpu, cpu, rip, 10);
            self.enters(now_us + 12, vcpu, cpu);
            now_us += 12;
        }
        now_us
    }
}
