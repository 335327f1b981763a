// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests' own logs of a run as a file: the ground truth, kept apart from what the host saw.
//!
//! `struct unspin_guest_wait` of `abi/guest/memory.h`, checked: a guest's claims are hostile input.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use unspin_abi as abi;

use crate::ClockSample;

/// Version of the file.
const VERSION: u32 = 1;

/// What the micro guests of one run logged, with the clock that puts it on the host's time line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestLog {
    version: u32,
    /// Both clocks at the beginning and at the end of the run.
    pub clock: [ClockSample; 2],
    /// One per VM that the host observed.
    pub vms: Vec<GuestLogVm>,
}

/// One VM's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestLogVm {
    /// Its number in the host's events.
    pub vm: u32,
    /// Its name.
    pub name: String,
    /// Its lock, by the scenario's word.
    pub lock: String,
    /// How many vCPUs it has.
    pub vcpus: u16,
    /// Whether every acquisition stands in it: nothing left out as too short, nothing dropped.
    pub complete: bool,
    /// Records that were not believed.
    pub refused: u64,
    /// Times as the host's TSC read.
    pub waits: Vec<GuestWait>,
}

/// Why bytes are not a guest log.
#[derive(Debug, thiserror::Error)]
pub enum GuestLogError {
    /// Reading or writing failed.
    #[error("guest log: {0}")]
    Io(#[from] io::Error),
    /// Not JSON, or not of this shape.
    #[error("this is no guest log: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version.
    #[error("the guest log has version {0}; this program reads version {VERSION}")]
    Version(u32),
}

impl GuestLog {
    /// A log of those VMs.
    pub fn new(clock: [ClockSample; 2], vms: Vec<GuestLogVm>) -> GuestLog {
        GuestLog {
            version: VERSION,
            clock,
            vms,
        }
    }

    /// Writes it as JSON. The same log gives the same bytes.
    ///
    /// # Errors
    /// What `output` says.
    pub fn write(&self, output: &mut dyn Write) -> Result<(), GuestLogError> {
        Ok(serde_json::to_writer(output, self)?)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Bytes that are no log, or of another version.
    pub fn read(input: &mut dyn Read) -> Result<GuestLog, GuestLogError> {
        let log: GuestLog = serde_json::from_reader(input)?;
        match log.version {
            VERSION => Ok(log),
            other => Err(GuestLogError::Version(other)),
        }
    }
}

/// Most vCPUs of a VM.
pub const VCPUS_MAX: u16 = abi::UNSPIN_GUEST_VCPUS_MAX as u16;

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A lock.
    Lock,
    /// The answers to a TLB shootdown.
    Shootdown,
    /// No wait: the moment at which this vCPU answered the shootdown of the one in `targets`.
    Answer,
}

/// The moment at which a wait had lasted more than the guest's `stall_spins`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When, TSC cycles.
    pub tsc: u64,
    /// vCPU that held the lock then; `None`: nobody. Shootdowns: `None`.
    pub holder: Option<u16>,
    /// KVM's steal-time `preempted` flags of all vCPUs then, one bit each.
    pub preempted: u64,
    /// vCPUs that were asking for the same lock, this one included; shootdown: receivers that had not answered.
    pub waiting: u64,
}

/// One wait as a guest logged it, in range and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestWait {
    /// vCPU that waited.
    pub vcpu: u16,
    /// For what.
    pub kind: WaitKind,
    /// Number of the lock.
    pub lock: u16,
    /// Asked for the lock, or sent the IPI; TSC cycles.
    pub begin_tsc: u64,
    /// Acquired it, or had all answers.
    pub end_tsc: u64,
    /// Unlock was done, TSC cycles; `None` for shootdowns and answers.
    pub released_tsc: Option<u64>,
    /// Shootdown: receivers, one bit per vCPU; answer: the one that asked.
    pub targets: u64,
    /// Spins of the waiting loop; 0: nothing to wait for.
    pub spins: u32,
    /// When it became a stall, if it did.
    pub stall: Option<Stall>,
}

/// Why a record is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum WaitError {
    /// Not written, or cut off.
    #[error("the record is not complete")]
    Incomplete,
    /// A kind that does not exist.
    #[error("the record's kind does not exist")]
    Kind,
    /// It names a vCPU that the VM does not have.
    #[error("the record names a vCPU that does not exist")]
    Vcpu,
    /// Its times run backwards.
    #[error("the record's times run backwards")]
    Times,
}

impl GuestWait {
    /// Checks a record that vCPU `vcpu` of a VM with `vcpus` of them logged.
    ///
    /// # Errors
    /// What is wrong with it. A holder, waiters and receivers that do not exist are wrong too.
    pub fn from_abi(
        vcpu: u16,
        vcpus: u16,
        raw: &abi::unspin_guest_wait,
    ) -> Result<GuestWait, WaitError> {
        let vcpus = vcpus.min(VCPUS_MAX);
        let kind = match u32::from(raw.kind) {
            0 => return Err(WaitError::Incomplete),
            abi::UNSPIN_WAIT_LOCK => WaitKind::Lock,
            abi::UNSPIN_WAIT_SHOOTDOWN => WaitKind::Shootdown,
            abi::UNSPIN_WAIT_ANSWER => WaitKind::Answer,
            _ => return Err(WaitError::Kind),
        };
        let holder = (u32::from(raw.holder_at_stall) != abi::UNSPIN_NOBODY)
            .then_some(u16::from(raw.holder_at_stall));
        let stall = (kind != WaitKind::Answer && raw.stall_tsc != 0).then_some(Stall {
            tsc: raw.stall_tsc,
            holder: if kind == WaitKind::Lock { holder } else { None },
            preempted: raw.preempted_at_stall,
            waiting: raw.waiting_at_stall,
        });
        let beyond = |mask: u64| vcpus < 64 && mask >> vcpus != 0;
        let absent = |stall: Stall| {
            beyond(stall.waiting) || stall.holder.is_some_and(|holder| holder >= vcpus)
        };
        if vcpu >= vcpus
            || stall.is_some_and(absent)
            || (kind != WaitKind::Lock && beyond(raw.targets))
        {
            return Err(WaitError::Vcpu);
        }
        let outside = |stall: Stall| stall.tsc < raw.begin_tsc || stall.tsc > raw.end_tsc;
        let released_tsc = (kind == WaitKind::Lock).then_some(raw.released_tsc);
        let early = released_tsc.is_some_and(|released_tsc| released_tsc < raw.end_tsc);
        if raw.end_tsc < raw.begin_tsc || early || stall.is_some_and(outside) {
            return Err(WaitError::Times);
        }
        Ok(GuestWait {
            vcpu,
            kind,
            lock: raw.lock,
            begin_tsc: raw.begin_tsc,
            end_tsc: raw.end_tsc,
            released_tsc,
            targets: if kind == WaitKind::Lock {
                0
            } else {
                raw.targets
            },
            spins: raw.spins,
            stall,
        })
    }
}
