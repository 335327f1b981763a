// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last IPI that a vCPU sent and may be waiting for: the evidence that `policy/classify/ple_reason.h` judges.

use unspin_policy::{IpiEvidence, Vector, Where, linux_vector};

use crate::exits::Sight;

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
