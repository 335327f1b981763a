// SPDX-License-Identifier: MIT OR Apache-2.0
//! The IPI record: who sent an inter-processor interrupt to whom, what the receiver was doing, and when it ran again; and the last
//! IPI that a vCPU sent and may be waiting for: the evidence that `policy/classify/ple_reason.h` judges.

use std::collections::BTreeMap;

use unspin_events::IpiForm;
use unspin_policy::{IpiEvidence, Vector, Where, linux_vector};

use crate::{
    exits::{Sight, vcpu::State},
    latency::Latency,
};

/// IPIs kept for one receiver until it runs; of more, the delay is not known.
const WAITING_MAX: usize = 256;
/// IPIs with the longest delays that are kept.
const LONGEST_KEPT: usize = 20;

/// What a receiver was doing when an IPI was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReceiverState {
    /// On a pCPU.
    Running,
    /// Preempted in user mode.
    PreemptedInUser,
    /// Preempted in kernel mode.
    PreemptedInKernel,
    /// Preempted; its mode is not known.
    Preempted,
    /// Woken from sleep already, and not run since.
    Woken,
    /// Asleep: halted, or waiting in user space.
    Halted,
    /// Not known.
    Unknown,
}

impl ReceiverState {
    /// All, in the order of tables.
    pub const ALL: [ReceiverState; 7] = [
        ReceiverState::Running,
        ReceiverState::PreemptedInUser,
        ReceiverState::PreemptedInKernel,
        ReceiverState::Preempted,
        ReceiverState::Woken,
        ReceiverState::Halted,
        ReceiverState::Unknown,
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            ReceiverState::Running => "running",
            ReceiverState::PreemptedInUser => "preempted_in_user",
            ReceiverState::PreemptedInKernel => "preempted_in_kernel",
            ReceiverState::Preempted => "preempted",
            ReceiverState::Woken => "woken",
            ReceiverState::Halted => "halted",
            ReceiverState::Unknown => "unknown",
        }
    }

    /// Of a vCPU in that state.
    pub fn of(state: State) -> ReceiverState {
        match state {
            State::Unknown => ReceiverState::Unknown,
            State::Running => ReceiverState::Running,
            State::Preempted(Some(Where::User)) => ReceiverState::PreemptedInUser,
            State::Preempted(Some(Where::Kernel)) => ReceiverState::PreemptedInKernel,
            State::Preempted(None) => ReceiverState::Preempted,
            State::Woken => ReceiverState::Woken,
            State::Halted => ReceiverState::Halted,
        }
    }
}

/// One IPI to one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// When it was sent.
    pub sent_ns: u64,
    /// VM of both.
    pub vm: u32,
    /// Who sent it.
    pub sender: u16,
    /// Whom it was for.
    pub receiver: u16,
    /// Its vector.
    pub vector: u8,
    /// How the sender named the receivers.
    pub form: IpiForm,
    /// What the receiver was doing.
    pub state: ReceiverState,
    /// Nanoseconds until the receiver got a pCPU; `None`: it was on one, or it is not known.
    pub delay_ns: Option<u64>,
}

/// IPIs of one VM, form and vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpiSums {
    /// By the receiver's state when they were sent.
    pub by_state: BTreeMap<ReceiverState, u64>,
    /// Until a receiver that was off its pCPU got one.
    pub delay: Latency,
    /// Receivers that were off their pCPU and whose delay is not known: they never ran again, or events are missing.
    pub delay_unknown: u64,
}

impl IpiSums {
    /// How many there were, counted by receivers.
    pub fn receivers(&self) -> u64 {
        self.by_state.values().sum()
    }
}

/// The record of all VMs.
#[derive(Clone, Debug, Default)]
pub struct IpiRecord {
    sums: BTreeMap<(u32, IpiForm, u8), IpiSums>,
    waiting: BTreeMap<(u32, u16), Vec<Ipi>>,
    longest: Vec<Ipi>,
}

impl IpiRecord {
    /// An IPI was sent; `ipi.delay_ns` is not looked at.
    pub fn sent(&mut self, ipi: Ipi) {
        let sums = self.sums.entry((ipi.vm, ipi.form, ipi.vector)).or_default();
        *sums.by_state.entry(ipi.state).or_default() += 1;
        match ipi.state {
            ReceiverState::Running => {}
            // It may have been running: how long it was off its pCPU means nothing.
            ReceiverState::Unknown => sums.delay_unknown += 1,
            _ => {
                let waiting = self.waiting.entry((ipi.vm, ipi.receiver)).or_default();
                if waiting.len() < WAITING_MAX {
                    waiting.push(ipi);
                } else {
                    sums.delay_unknown += 1;
                }
            }
        }
    }

    /// That vCPU got a pCPU.
    pub fn scheduled(&mut self, time_ns: u64, vm: u32, vcpu: u16) {
        let Some(waiting) = self.waiting.get_mut(&(vm, vcpu)) else {
            return;
        };
        for mut ipi in waiting.drain(..) {
            let delay_ns = time_ns.saturating_sub(ipi.sent_ns);
            ipi.delay_ns = Some(delay_ns);
            let sums = self.sums.entry((vm, ipi.form, ipi.vector)).or_default();
            sums.delay.add(delay_ns);
            keep_longest(&mut self.longest, ipi);
        }
    }

    /// Events are missing, or there are no more: what waits will not be known.
    pub fn forget(&mut self) {
        for ipi in std::mem::take(&mut self.waiting).into_values().flatten() {
            let sums = self.sums.entry((ipi.vm, ipi.form, ipi.vector)).or_default();
            sums.delay_unknown += 1;
        }
    }

    /// The sums by VM, form and vector.
    pub fn sums(&self) -> &BTreeMap<(u32, IpiForm, u8), IpiSums> {
        &self.sums
    }

    /// Those with the longest delays, the longest first.
    pub fn longest(&self) -> &[Ipi] {
        &self.longest
    }
}

fn keep_longest(longest: &mut Vec<Ipi>, ipi: Ipi) {
    // Later ones of equal delay come after: the order is that of the stream.
    let place = longest.partition_point(|kept| kept.delay_ns >= ipi.delay_ns);
    if place < LONGEST_KEPT {
        longest.insert(place, ipi);
        longest.truncate(LONGEST_KEPT);
    }
}

/// Whether a vCPU has sent an IPI that it may be waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastIpi {
    /// Not known: events are missing. Where it has spun since.
    Unknown(Option<u64>),
    /// None since it halted, was in user mode or waited elsewhere.
    None,
    /// One of that vector, and where it spun first after it.
    Sent(u8, Option<u64>),
}

impl Default for LastIpi {
    fn default() -> LastIpi {
        LastIpi::Unknown(None)
    }
}

impl LastIpi {
    /// The vCPU sends one.
    pub fn sent(&mut self, vector: u8) {
        *self = LastIpi::Sent(vector, None);
    }

    /// It does not wait for one: whoever waits for answers neither sleeps nor returns to user mode.
    pub fn over(&mut self) {
        *self = LastIpi::None;
    }

    /// A pause-loop exit at that location. `waits`: a receiver of this vCPU's IPIs has not run since. While one has not, an
    /// exit elsewhere is an interrupt handler's own wait, after which the first goes on.
    pub fn spins(&mut self, at: Option<u64>, mode: Option<Where>, waits: bool) {
        if mode == Some(Where::User) {
            self.over();
        }
        let (LastIpi::Sent(_, location) | LastIpi::Unknown(location)) = self else {
            return;
        };
        if location.is_none() || *location == at {
            *location = at;
        } else if !waits {
            self.over(); // it waits elsewhere: the answers have come
        }
    }

    /// What it says about an exit at that location, and its vector. `waits`: as above.
    pub fn evidence(&self, at: Option<u64>, waits: bool, sight: &Sight) -> (IpiEvidence, Vector) {
        let vector = match self {
            _ if sight.ipi_blind => return (IpiEvidence::NotKnown, Vector::NotKnown),
            LastIpi::Unknown(_) => return (IpiEvidence::NotKnown, Vector::NotKnown),
            LastIpi::None => return (IpiEvidence::None, Vector::NotKnown),
            LastIpi::Sent(_, location) if *location != at => {
                return (IpiEvidence::None, Vector::NotKnown);
            }
            LastIpi::Sent(vector, _) if sight.linux_vectors => linux_vector(*vector),
            LastIpi::Sent(..) => Vector::NotKnown,
        };
        let ipi = match waits {
            true => IpiEvidence::Open,
            false => IpiEvidence::Answered,
        };
        (ipi, vector)
    }
}
