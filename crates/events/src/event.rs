// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct unspin_event` of `abi/bpf/events.h`, typed.

mod codec;

use serde::{Deserialize, Serialize};
use unspin_abi as abi;

pub use codec::KIND_NAMES;

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
        /// The scheduler took the CPU; otherwise the thread called `schedule()` itself.
        preempt: bool,
        /// Where the guest was, where the host can tell.
        mode: Option<GuestMode>,
        /// Hardware code of the guest's last exit, where the host can tell.
        exit_code: Option<u32>,
        /// Guest instruction pointer, where the host can tell.
        guest_rip: Option<u64>,
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
        /// Where the guest was, where the host can tell.
        mode: Option<GuestMode>,
        /// Pause-loop window in force (AMD: PAUSEs; Intel: TSC cycles), where the host can tell.
        window: Option<u32>,
        /// Nanoseconds in the guest since the last entry; stops at `u32::MAX`.
        inside_ns: u32,
        /// Exits since this vCPU's previous pause-loop exit, host interrupts not counted; stops at `u16::MAX`.
        other_exits: u16,
        /// Exits for host interrupts since then; stops at `u16::MAX`.
        interrupt_exits: u16,
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
    /// The guest was entered again after a pause-loop exit.
    PauseEntry {
        /// Nanoseconds since the exit.
        outside_ns: u64,
        /// Of them until the vCPU first left its pCPU; all if it did not (ruling 17).
        handling_ns: u64,
    },
    /// An inter-processor interrupt was posted to one receiver; the event's vCPU sent it.
    Ipi {
        /// The receiver.
        receiver_vcpu: u16,
        /// Interrupt vector.
        vector: u8,
        /// Delivery mode as in the ICR: 0 fixed, 4 NMI, ...
        delivery_mode: u8,
        /// How the sender named the receivers.
        form: IpiForm,
        /// Destination as the sender wrote it, where the host can tell.
        destination: Option<u64>,
    },
    /// Events are missing before this one.
    Lost {
        /// How many.
        events: u64,
        /// `enum unspin_event_kind` of them.
        lost_kind: u32,
    },
    /// What the guest's pv page said (abi/guest/pv_page.h).
    PvPage {
        /// The three arguments.
        arguments: [u64; 3],
    },
}

/// Where a guest was when it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestMode {
    /// CPL 3.
    User,
    /// CPL 0 to 2.
    Kernel,
}

/// How the sender of an inter-processor interrupt named its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpiForm {
    /// The host cannot tell.
    Unknown,
    /// By APIC id.
    Physical,
    /// By logical destination.
    Logical,
    /// Itself.
    OneSelf,
    /// Everybody.
    All,
    /// Everybody else.
    AllButSelf,
    /// By the hypercall `KVM_HC_SEND_IPI`.
    Hypercall,
}

impl What {
    /// The word for this kind, one of [`KIND_NAMES`].
    pub fn name(&self) -> &'static str {
        KIND_NAMES[self.encode().0 as usize]
    }
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
    /// Says that so many events of that kind (0: of any) are missing before this moment; `u64::MAX`: nobody knows how many.
    pub const fn lost(time_ns: u64, events: u64, lost_kind: u32) -> Event {
        Event {
            time_ns,
            vm: None,
            vcpu: None,
            thread: 0,
            cpu: 0,
            what: What::Lost { events, lost_kind },
        }
    }

    /// The event that those fields mean.
    ///
    /// # Errors
    /// A kind that is not in `enum unspin_event_kind`, or an argument that its kind does not allow.
    pub fn decode(raw: &abi::unspin_event) -> Result<Event, DecodeError> {
        Ok(Event {
            time_ns: raw.time_ns,
            vm: codec::known_vm(raw.vm),
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
