// SPDX-License-Identifier: MIT OR Apache-2.0
//! The IPI record: who sent an inter-processor interrupt to whom, what the receiver was doing, and when it ran again; and the last
//! IPI that a vCPU sent and may be waiting for: the evidence that `policy/classify/ple_reason.h` judges.

use std::collections::BTreeMap;

use unspin_events::IpiForm;
use unspin_policy::{IpiEvidence, Vector, Where, linux_vector};

use crate::exits::{Sight, vcpu::State};

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

/// Buckets of a power of two, as a power of two: a percentile is at most 1/16 too large.
const SPLIT_BITS: u32 = 4;

/// A histogram of times, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    buckets: BTreeMap<u32, u64>,
    count: u64,
    largest_ns: u64,
}

impl Latency {
    /// Adds a time.
    pub fn add(&mut self, ns: u64) {
        *self.buckets.entry(bucket(ns)).or_default() += 1;
        self.count += 1;
        self.largest_ns = self.largest_ns.max(ns);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest; `None` without any.
    pub fn largest_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.largest_ns)
    }

    /// A time that `percent` (0 to 100) of them do not exceed, at most 1/16 above the least such; `None` without any.
    pub fn percentile_ns(&self, percent: u32) -> Option<u64> {
        let wanted = (u128::from(self.count) * u128::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut seen = 0;
        self.buckets.iter().find_map(|(&bucket, &count)| {
            seen += u128::from(count);
            (seen >= wanted).then(|| upper_bound(bucket).min(self.largest_ns))
        })
    }
}

/// Times below 2^SPLIT_BITS have a bucket each; above, each power of two has 2^SPLIT_BITS.
fn bucket(ns: u64) -> u32 {
    let bits = 64 - ns.leading_zeros();
    match bits.checked_sub(SPLIT_BITS + 1) {
        None => ns as u32,
        Some(shift) => (shift << SPLIT_BITS) + (ns >> shift) as u32,
    }
}

/// The largest time of a bucket.
fn upper_bound(bucket: u32) -> u64 {
    match (bucket >> SPLIT_BITS).checked_sub(1) {
        None => bucket.into(),
        Some(shift) => {
            let top = u64::from(bucket) - (u64::from(shift) << SPLIT_BITS);
            (top << shift) | ((1 << shift) - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Latency::default().percentile_ns(50), None);
        assert_eq!(Latency::default().largest_ns(), None);
    }

    proptest! {
        #[test]
        fn buckets_are_in_order_and_narrow(ns in any::<u64>()) {
            let upper = upper_bound(bucket(ns));
            prop_assert!(upper >= ns);
            prop_assert!(upper - ns <= ns / 16);
            prop_assert_eq!(bucket(upper), bucket(ns));
            prop_assert!(upper == u64::MAX || bucket(upper + 1) == bucket(ns) + 1);
        }

        #[test]
        fn percentiles_are_close(mut times in prop::collection::vec(0u64..1 << 40, 1..50), percent in 0u32..=100) {
            let mut latency = Latency::default();
            for &ns in &times {
                latency.add(ns);
            }
            times.sort();
            let rank = (times.len() * percent as usize).div_ceil(100).max(1);
            let exact = times[rank - 1];
            let found = latency.percentile_ns(percent).expect("some");
            prop_assert!(found >= exact && found - exact <= exact / 16);
        }
    }
}
