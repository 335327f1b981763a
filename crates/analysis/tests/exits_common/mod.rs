// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of events made by hand: one VM, times in microseconds, thread ids 100 + vCPU.
#![allow(dead_code)]

use unspin_events::{Event, GuestMode, IpiForm, What};

/// Where vCPUs spin in these streams.
pub const LOCK: u64 = 0x1000;
/// Where they wait for answers.
pub const ANSWERS: u64 = 0x2000;

/// Events in the making.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// In order of time.
    pub events: Vec<Event>,
    /// Of the next event.
    pub now_us: u64,
    /// VM of the events.
    pub vm: u32,
}

impl Stream {
    /// The next event is so much later.
    pub fn later(&mut self, us: u64) -> &mut Stream {
        self.now_us += us;
        self
    }

    /// An event of that vCPU; the next one is 1 us later.
    pub fn push(&mut self, vcpu: u16, cpu: u16, what: What) -> &mut Stream {
        self.events.push(Event {
            time_ns: self.now_us * 1000,
            vm: Some(self.vm),
            vcpu: Some(vcpu),
            thread: 100 + u32::from(vcpu),
            cpu,
            what,
        });
        self.later(1)
    }

    /// It gets a pCPU.
    pub fn on(&mut self, vcpu: u16, cpu: u16) -> &mut Stream {
        self.push(
            vcpu,
            cpu,
            What::SwitchIn {
                previous_thread: 0,
                previous_vm: None,
            },
        )
    }

    /// It is preempted in that mode.
    pub fn preempted(&mut self, vcpu: u16, cpu: u16, mode: Option<GuestMode>) -> &mut Stream {
        self.off(vcpu, cpu, mode, None)
    }

    /// It halts.
    pub fn halts(&mut self, vcpu: u16, cpu: u16) -> &mut Stream {
        self.sleeps(vcpu, cpu, 0x78)
    }

    /// It falls asleep after an exit of that code (AMD's).
    pub fn sleeps(&mut self, vcpu: u16, cpu: u16, exit_code: u32) -> &mut Stream {
        self.off(vcpu, cpu, Some(GuestMode::Kernel), Some(exit_code))
    }

    fn off(
        &mut self,
        vcpu: u16,
        cpu: u16,
        mode: Option<GuestMode>,
        asleep_after: Option<u32>,
    ) -> &mut Stream {
        let runnable = asleep_after.is_none();
        self.push(
            vcpu,
            cpu,
            What::SwitchOut {
                next_thread: 0,
                next_vm: None,
                runnable,
                preempt: runnable,
                mode,
                exit_code: asleep_after,
                guest_rip: None,
            },
        )
    }

    /// It is woken.
    pub fn woken(&mut self, vcpu: u16) -> &mut Stream {
        self.push(vcpu, 0, What::SchedWakeup { waker_thread: 1 })
    }

    /// It sends an IPI.
    pub fn ipi(&mut self, sender: u16, cpu: u16, receiver: u16) -> &mut Stream {
        self.push(
            sender,
            cpu,
            What::Ipi {
                receiver_vcpu: receiver,
                vector: 0xfc,
                delivery_mode: 0,
                form: IpiForm::Physical,
                destination: None,
            },
        )
    }

    /// A pause-loop exit begins, in the kernel.
    pub fn exit(&mut self, vcpu: u16, cpu: u16, location: u64) -> &mut Stream {
        self.exit_in(vcpu, cpu, location, GuestMode::Kernel)
    }

    /// A pause-loop exit begins.
    pub fn exit_in(&mut self, vcpu: u16, cpu: u16, location: u64, mode: GuestMode) -> &mut Stream {
        let exit = What::PauseExit {
            guest_rip: Some(location),
            mode: Some(mode),
            window: Some(100),
            inside_ns: 10_000,
            other_exits: 0,
            interrupt_exits: 0,
        };
        self.push(vcpu, cpu, exit)
            .push(vcpu, cpu, What::KvmVcpuOnSpin)
    }

    /// `yield_to()` returns.
    pub fn yielded(&mut self, vcpu: u16, cpu: u16, result: i64, target: u16) -> &mut Stream {
        self.push(
            vcpu,
            cpu,
            What::YieldTo {
                result,
                target_vcpu: Some(target),
                target_thread: 100 + u32::from(target),
            },
        )
    }

    /// The guest is entered again.
    pub fn entry(&mut self, vcpu: u16, cpu: u16) -> &mut Stream {
        self.push(
            vcpu,
            cpu,
            What::PauseEntry {
                outside_ns: 2_000,
                handling_ns: 1_000,
            },
        )
    }

    /// Events are missing.
    pub fn lost(&mut self) -> &mut Stream {
        self.events.push(Event::lost(self.now_us * 1000, 1, 1));
        self.later(1)
    }
}
