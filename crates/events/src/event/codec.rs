// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three arguments of `struct unspin_event`, kind by kind (`abi/bpf/events.h` says what each means).

use unspin_abi as abi;

use crate::{DecodeError, GuestMode, IpiForm, What};

/// The word for each `enum unspin_event_kind`, as in JSON and in tables; the kernel's where it has one.
pub const KIND_NAMES: [&str; abi::UNSPIN_EVENT_KINDS as usize] = [
    "none",
    "switch_in",
    "switch_out",
    "sched_wakeup",
    "pause_exit",
    "kvm_vcpu_on_spin",
    "yield_to",
    "kvm_exit",
    "kvm_entry",
    "guest_wait",
    "pause_entry",
    "ipi",
    "lost",
    "pv_page",
];

const NO_HALF: u32 = abi::UNSPIN_UNKNOWN_HALF;

impl What {
    pub(crate) fn decode(raw: &abi::unspin_event) -> Result<What, DecodeError> {
        let arguments = Arguments(raw);
        Ok(match raw.kind {
            abi::UNSPIN_EVENT_SWITCH_IN => What::SwitchIn {
                previous_thread: arguments.narrow(0)?,
                previous_vm: known_vm(arguments.narrow(1)?),
            },
            abi::UNSPIN_EVENT_SWITCH_OUT => arguments.switch_out()?,
            abi::UNSPIN_EVENT_WAKEUP => What::SchedWakeup {
                waker_thread: arguments.narrow(0)?,
            },
            abi::UNSPIN_EVENT_PAUSE_EXIT => What::PauseExit {
                guest_rip: known(raw.argument0),
                mode: arguments.mode(1, raw.argument1 as u32)?,
                window: known_half(high(raw.argument1)),
                inside_ns: raw.argument2 as u32,
                other_exits: (raw.argument2 >> 32) as u16,
                interrupt_exits: (raw.argument2 >> 48) as u16,
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
            abi::UNSPIN_EVENT_PAUSE_ENTRY => What::PauseEntry {
                outside_ns: raw.argument0,
                handling_ns: raw.argument1,
            },
            abi::UNSPIN_EVENT_IPI => arguments.ipi()?,
            abi::UNSPIN_EVENT_LOST => What::Lost {
                events: raw.argument0,
                lost_kind: arguments.narrow(1)?,
            },
            abi::UNSPIN_EVENT_PV_PAGE => What::PvPage {
                arguments: [raw.argument0, raw.argument1, raw.argument2],
            },
            other => return Err(DecodeError::Kind(other)),
        })
    }

    pub(crate) fn encode(&self) -> (u32, [u64; 3]) {
        let unknown = abi::UNSPIN_UNKNOWN as u64;
        match *self {
            What::SwitchIn {
                previous_thread,
                previous_vm,
            } => (
                abi::UNSPIN_EVENT_SWITCH_IN,
                [previous_thread.into(), vm_number(previous_vm).into(), 0],
            ),
            What::SwitchOut {
                next_thread,
                next_vm,
                runnable,
                preempt,
                mode,
                exit_code,
                guest_rip,
            } => {
                let flag = |set: bool, flag: u32| if set { flag } else { 0 };
                let flags = flag(runnable, abi::UNSPIN_SWITCH_RUNNABLE)
                    | flag(preempt, abi::UNSPIN_SWITCH_PREEMPT)
                    | mode_number(mode) << abi::UNSPIN_SWITCH_MODE_SHIFT;
                (
                    abi::UNSPIN_EVENT_SWITCH_OUT,
                    [
                        halves(next_thread, vm_number(next_vm)),
                        halves(flags, exit_code.unwrap_or(NO_HALF)),
                        guest_rip.unwrap_or(unknown),
                    ],
                )
            }
            What::SchedWakeup { waker_thread } => {
                (abi::UNSPIN_EVENT_WAKEUP, [waker_thread.into(), 0, 0])
            }
            What::PauseExit {
                guest_rip,
                mode,
                window,
                inside_ns,
                other_exits,
                interrupt_exits,
            } => (
                abi::UNSPIN_EVENT_PAUSE_EXIT,
                [
                    guest_rip.unwrap_or(unknown),
                    halves(mode_number(mode), window.unwrap_or(NO_HALF)),
                    u64::from(inside_ns)
                        | u64::from(other_exits) << 32
                        | u64::from(interrupt_exits) << 48,
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
            What::PauseEntry {
                outside_ns,
                handling_ns,
            } => (abi::UNSPIN_EVENT_PAUSE_ENTRY, [outside_ns, handling_ns, 0]),
            What::Ipi {
                receiver_vcpu,
                vector,
                delivery_mode,
                form,
                destination,
            } => (
                abi::UNSPIN_EVENT_IPI,
                [
                    receiver_vcpu.into(),
                    u64::from(vector) | u64::from(delivery_mode) << 8 | (form as u64) << 16,
                    destination.unwrap_or(unknown),
                ],
            ),
            What::Lost { events, lost_kind } => {
                (abi::UNSPIN_EVENT_LOST, [events, lost_kind.into(), 0])
            }
            What::PvPage { arguments } => (abi::UNSPIN_EVENT_PV_PAGE, arguments),
        }
    }
}

/// In the order of `enum unspin_ipi_form`, whose values `IpiForm as u64` are.
const IPI_FORMS: [IpiForm; abi::UNSPIN_IPI_FORMS as usize] = [
    IpiForm::Unknown,
    IpiForm::Physical,
    IpiForm::Logical,
    IpiForm::OneSelf,
    IpiForm::All,
    IpiForm::AllButSelf,
    IpiForm::Hypercall,
];

fn known(argument: u64) -> Option<u64> {
    (argument != abi::UNSPIN_UNKNOWN as u64).then_some(argument)
}

fn known_half(half: u32) -> Option<u32> {
    (half != NO_HALF).then_some(half)
}

pub(crate) fn known_vm(number: u32) -> Option<u32> {
    (number != abi::UNSPIN_NO_VM).then_some(number)
}

fn vm_number(vm: Option<u32>) -> u32 {
    vm.unwrap_or(abi::UNSPIN_NO_VM)
}

fn mode_number(mode: Option<GuestMode>) -> u32 {
    match mode {
        None => abi::UNSPIN_MODE_UNKNOWN,
        Some(GuestMode::User) => abi::UNSPIN_MODE_USER,
        Some(GuestMode::Kernel) => abi::UNSPIN_MODE_KERNEL,
    }
}

fn high(argument: u64) -> u32 {
    (argument >> 32) as u32
}

fn halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

struct Arguments<'event>(&'event abi::unspin_event);

impl Arguments<'_> {
    fn switch_out(&self) -> Result<What, DecodeError> {
        let flags = self.0.argument1 as u32;
        if flags & !abi::UNSPIN_SWITCH_FLAGS != 0 {
            return Err(self.out_of_range(1));
        }
        Ok(What::SwitchOut {
            next_thread: self.0.argument0 as u32,
            next_vm: known_vm(high(self.0.argument0)),
            runnable: flags & abi::UNSPIN_SWITCH_RUNNABLE != 0,
            preempt: flags & abi::UNSPIN_SWITCH_PREEMPT != 0,
            mode: self.mode(1, flags >> abi::UNSPIN_SWITCH_MODE_SHIFT)?,
            exit_code: known_half(high(self.0.argument1)),
            guest_rip: known(self.0.argument2),
        })
    }

    fn ipi(&self) -> Result<What, DecodeError> {
        let how = self.0.argument1;
        let form = usize::try_from(how >> 16)
            .ok()
            .and_then(|form| IPI_FORMS.get(form));
        Ok(What::Ipi {
            receiver_vcpu: self.narrow(0)?,
            vector: how as u8,
            delivery_mode: (how >> 8) as u8,
            form: *form.ok_or(self.out_of_range(1))?,
            destination: known(self.0.argument2),
        })
    }

    fn mode(&self, index: u8, number: u32) -> Result<Option<GuestMode>, DecodeError> {
        match number {
            abi::UNSPIN_MODE_UNKNOWN => Ok(None),
            abi::UNSPIN_MODE_USER => Ok(Some(GuestMode::User)),
            abi::UNSPIN_MODE_KERNEL => Ok(Some(GuestMode::Kernel)),
            _ => Err(self.out_of_range(index)),
        }
    }

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

    fn out_of_range(&self, index: u8) -> DecodeError {
        DecodeError::Argument {
            kind: self.0.kind,
            index,
            value: self.value(index),
        }
    }
}
