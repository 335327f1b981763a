// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct unspin_event` of `abi/events.h`, typed.

use serde::{Deserialize, Serialize};
use unspin_abi as abi;

/// Something that happened to a vCPU. Times are nanoseconds of `CLOCK_MONOTONIC`, simulated ones in the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub time_ns: u64,
    /// Number of the VM in order of appearance; `None`: none.
    pub vm: Option<u32>,
    /// KVM's number of the vCPU; `None`: none.
    pub vcpu: Option<u16>,
    /// Id of the vCPU's thread.
    pub thread: u32,
    /// pCPU it happened on.
    pub cpu: u16,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened; the words are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// The vCPU's thread got a pCPU.
    SwitchIn {
        /// Thread that left it.
        previous_thread: u32,
        /// VM of that thread.
        previous_vm: Option<u32>,
    },
    /// The vCPU's thread left its pCPU.
    SwitchOut {
        /// Thread that follows.
        next_thread: u32,
        /// VM of that thread.
        next_vm: Option<u32>,
        /// Still runnable (preempted or yielded), or asleep.
        runnable: bool,
    },
    /// A sleeping vCPU thread became runnable.
    SchedWakeup {
        /// Thread that woke it.
        waker_thread: u32,
    },
    /// Pause-loop exit.
    PauseExit {
        /// Guest instruction pointer, where the host can tell.
        guest_rip: Option<u64>,
        /// Whether the guest was in kernel mode, where the host can tell.
        kernel_mode: Option<bool>,
    },
    /// `kvm_vcpu_on_spin()` was entered.
    KvmVcpuOnSpin,
    /// `yield_to()` returned to `kvm_vcpu_on_spin()`.
    YieldTo {
        /// Above 0: done; 0: refused; below: failed.
        result: i64,
        /// vCPU that was to get the pCPU; `None`: not a vCPU known yet.
        target_vcpu: Option<u16>,
        /// Its thread.
        target_thread: u32,
    },
    /// The guest was left.
    KvmExit {
        /// Hardware exit code, where the host can tell.
        exit_code: Option<u64>,
    },
    /// The guest was entered.
    KvmEntry {
        /// Nanoseconds since the exit; 0 at the first entry.
        outside_ns: u64,
    },
    /// Ground truth from the guest: a wait that ended now.
    GuestWait {
        /// How long it lasted.
        wait_ns: u64,
        /// Number of the lock, or one bit per vCPU that a shootdown was sent to.
        target: u64,
        /// `enum unspin_wait_kind`.
        wait_kind: u32,
    },
}

/// Why bytes are not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A kind that this version does not have.
    #[error("event kind {0} is unknown to this version")]
    Kind(u32),
    /// An argument that its kind does not allow.
    #[error("argument {index} of a {kind} event is {value:#x}: out of range")]
    Argument {
        /// Number of the kind.
        kind: u32,
        /// 0 to 2.
        index: u8,
        /// What it holds.
        value: u64,
    },
}

impl Event {
    /// The event that those fields mean.
    ///
    /// # Errors
    /// A kind that is not in `enum unspin_event_kind`, or an argument that its kind does not allow.
    pub fn decode(raw: &abi::unspin_event) -> Result<Event, DecodeError> {
        Ok(Event {
            time_ns: raw.time_ns,
            vm: known_vm(raw.vm.into()),
            vcpu: (u32::from(raw.vcpu) != abi::UNSPIN_NO_VCPU).then_some(raw.vcpu),
            thread: raw.thread,
            cpu: raw.cpu,
            what: What::decode(raw)?,
        })
    }

    /// The fields that mean this event; the inverse of [`Event::decode`].
    pub fn encode(&self) -> abi::unspin_event {
        let (kind, arguments) = self.what.encode();
        abi::unspin_event {
            time_ns: self.time_ns,
            kind,
            vm: self.vm.unwrap_or(abi::UNSPIN_NO_VM),
            thread: self.thread,
            vcpu: self.vcpu.unwrap_or(abi::UNSPIN_NO_VCPU as u16),
            cpu: self.cpu,
            argument0: arguments[0],
            argument1: arguments[1],
            argument2: arguments[2],
        }
    }
}

impl What {
    fn decode(raw: &abi::unspin_event) -> Result<What, DecodeError> {
        let arguments = Arguments(raw);
        Ok(match raw.kind {
            abi::UNSPIN_EVENT_SWITCH_IN => What::SwitchIn {
                previous_thread: arguments.narrow(0)?,
                previous_vm: known_vm(u64::from(arguments.narrow::<u32>(1)?)),
            },
            abi::UNSPIN_EVENT_SWITCH_OUT => What::SwitchOut {
                next_thread: arguments.narrow(0)?,
                next_vm: known_vm(u64::from(arguments.narrow::<u32>(1)?)),
                runnable: arguments.flag(2)?,
            },
            abi::UNSPIN_EVENT_WAKEUP => What::SchedWakeup {
                waker_thread: arguments.narrow(0)?,
            },
            abi::UNSPIN_EVENT_PAUSE_EXIT => What::PauseExit {
                guest_rip: known(raw.argument0),
                kernel_mode: known(raw.argument1)
                    .map(|_| arguments.flag(1))
                    .transpose()?,
            },
            abi::UNSPIN_EVENT_ON_SPIN => What::KvmVcpuOnSpin,
            abi::UNSPIN_EVENT_YIELD_TO => What::YieldTo {
                result: raw.argument0 as i64,
                target_vcpu: known(raw.argument1)
                    .map(|_| arguments.narrow(1))
                    .transpose()?,
                target_thread: arguments.narrow(2)?,
            },
            abi::UNSPIN_EVENT_EXIT => What::KvmExit {
                exit_code: known(raw.argument0),
            },
            abi::UNSPIN_EVENT_ENTRY => What::KvmEntry {
                outside_ns: raw.argument0,
            },
            abi::UNSPIN_EVENT_GUEST_WAIT => What::GuestWait {
                wait_ns: raw.argument0,
                target: raw.argument1,
                wait_kind: arguments.narrow(2)?,
            },
            other => return Err(DecodeError::Kind(other)),
        })
    }

    fn encode(&self) -> (u32, [u64; 3]) {
        let vm = |number: Option<u32>| u64::from(number.unwrap_or(abi::UNSPIN_NO_VM));
        let unknown = abi::UNSPIN_UNKNOWN as u64;
        match *self {
            What::SwitchIn {
                previous_thread,
                previous_vm,
            } => (
                abi::UNSPIN_EVENT_SWITCH_IN,
                [previous_thread.into(), vm(previous_vm), 0],
            ),
            What::SwitchOut {
                next_thread,
                next_vm,
                runnable,
            } => (
                abi::UNSPIN_EVENT_SWITCH_OUT,
                [next_thread.into(), vm(next_vm), runnable.into()],
            ),
            What::SchedWakeup { waker_thread } => {
                (abi::UNSPIN_EVENT_WAKEUP, [waker_thread.into(), 0, 0])
            }
            What::PauseExit {
                guest_rip,
                kernel_mode,
            } => (
                abi::UNSPIN_EVENT_PAUSE_EXIT,
                [
                    guest_rip.unwrap_or(unknown),
                    kernel_mode.map_or(unknown, u64::from),
                    0,
                ],
            ),
            What::KvmVcpuOnSpin => (abi::UNSPIN_EVENT_ON_SPIN, [0, 0, 0]),
            What::YieldTo {
                result,
                target_vcpu,
                target_thread,
            } => (
                abi::UNSPIN_EVENT_YIELD_TO,
                [
                    result as u64,
                    target_vcpu.map_or(unknown, u64::from),
                    target_thread.into(),
                ],
            ),
            What::KvmExit { exit_code } => {
                (abi::UNSPIN_EVENT_EXIT, [exit_code.unwrap_or(unknown), 0, 0])
            }
            What::KvmEntry { outside_ns } => (abi::UNSPIN_EVENT_ENTRY, [outside_ns, 0, 0]),
            What::GuestWait {
                wait_ns,
                target,
                wait_kind,
            } => (
                abi::UNSPIN_EVENT_GUEST_WAIT,
                [wait_ns, target, wait_kind.into()],
            ),
        }
    }
}

fn known(argument: u64) -> Option<u64> {
    (argument != abi::UNSPIN_UNKNOWN as u64).then_some(argument)
}

fn known_vm(number: u64) -> Option<u32> {
    u32::try_from(number)
        .ok()
        .filter(|&number| number != abi::UNSPIN_NO_VM)
}

struct Arguments<'event>(&'event abi::unspin_event);

impl Arguments<'_> {
    fn value(&self, index: u8) -> u64 {
        match index {
            0 => self.0.argument0,
            1 => self.0.argument1,
            _ => self.0.argument2,
        }
    }

    fn narrow<T: TryFrom<u64>>(&self, index: u8) -> Result<T, DecodeError> {
        T::try_from(self.value(index)).map_err(|_| self.out_of_range(index))
    }

    fn flag(&self, index: u8) -> Result<bool, DecodeError> {
        match self.value(index) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.out_of_range(index)),
        }
    }

    fn out_of_range(&self, index: u8) -> DecodeError {
        DecodeError::Argument {
            kind: self.0.kind,
            index,
            value: self.value(index),
        }
    }
}
