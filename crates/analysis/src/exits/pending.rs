// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pause-loop exit from the exit until the guest is entered again: the facts for `policy/classify/ple_outcome.h` as they come.

use unspin_policy::{Candidate, IpiEvidence, Outcome, OutcomeFacts, Vector, Where};

/// One other vCPU when KVM looked for one to boost.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// Its number.
    pub number: u16,
    /// What it was doing.
    pub candidate: Candidate,
}

/// A vCPU that was boosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Boost {
    target: Option<u16>,
    halted: Option<bool>,
    receiver: Option<bool>,
    same_cpu: Option<bool>,
}

/// A pause-loop exit that is being handled.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Guest instruction pointer.
    pub location: Option<u64>,
    /// Where the guest was.
    pub mode: Option<Where>,
    /// The spinner's own last IPI.
    pub ipi: IpiEvidence,
    /// That one's vector.
    pub vector: Vector,
    /// The others when `kvm_vcpu_on_spin()` was entered; `None`: that was not seen.
    others: Option<Vec<Other>>,
    looked_ns: u64,
    boost: Option<Boost>,
    /// Events are missing.
    broken: bool,
}

/// What is known of a vCPU for which `yield_to()` was called.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its number in the spinner's VM; `None`: not known.
    pub number: Option<u16>,
    /// Whether it last ran on the spinner's pCPU.
    pub same_cpu: Option<bool>,
}

impl Pending {
    /// An exit has happened.
    pub fn new(
        location: Option<u64>,
        mode: Option<Where>,
        ipi: IpiEvidence,
        vector: Vector,
    ) -> Pending {
        Pending {
            location,
            mode,
            ipi,
            vector,
            others: None,
            looked_ns: 0,
            boost: None,
            broken: false,
        }
    }

    /// KVM looks for a vCPU to boost.
    pub fn look(&mut self, time_ns: u64, others: Vec<Other>) {
        self.others = Some(others);
        self.looked_ns = time_ns;
    }

    /// `yield_to()` has returned.
    pub fn yielded(&mut self, result: i64, target: Target) {
        if self.others.is_none() {
            self.broken = true;
        }
        let others = self.others.get_or_insert_default();
        let other = others
            .iter_mut()
            .find(|other| target.number == Some(other.number));
        if result > 0 {
            self.boost = Some(Boost {
                target: target.number,
                halted: other.as_ref().and_then(|other| other.candidate.is_halted()),
                receiver: other.and_then(|other| other.candidate.receiver),
                same_cpu: target.same_cpu,
            });
            return;
        }
        match other {
            Some(other) => other.candidate.tried = Some(true),
            // One of them, but which?
            None => others
                .iter_mut()
                .for_each(|other| other.candidate.tried = None),
        }
    }

    /// Events are missing since the exit.
    pub fn forget(&mut self) {
        self.broken = true;
    }

    /// Whether the boosted vCPU last ran on the spinner's pCPU; `None`: not known, or none was boosted.
    pub fn boosted_on_same_cpu(&self) -> Option<bool> {
        self.boost?.same_cpu
    }

    /// Whether a vCPU was boosted.
    pub fn is_boosted(&self) -> bool {
        self.boost.is_some()
    }

    /// The vCPU that was boosted, if it is known.
    pub fn target(&self) -> Option<u16> {
        self.boost?.target
    }

    /// What became of it. `entered`: the guest is entered again, so nothing more can come. `target_in_ns`: when the boosted
    /// vCPU last got a pCPU, if its switches are known; it ran before the spinner if that was after KVM looked. The spinner
    /// runs again when its guest is entered: not when yield_to() returns, which a target on another pCPU, where an IPI must
    /// arrive first, can hardly precede.
    pub fn outcome(&self, entered: bool, target_in_ns: Option<u64>) -> Outcome {
        let (Some(others), false) = (&self.others, self.broken) else {
            return Outcome::Unknown;
        };
        let mut facts = OutcomeFacts::default();
        for other in others {
            facts.add(other.candidate, self.mode);
        }
        match self.boost {
            Some(boost) => {
                let target_ran = target_in_ns.map(|in_ns| in_ns >= self.looked_ns);
                let spinner_first = match target_ran {
                    Some(true) => Some(false),
                    Some(false) if entered => Some(true),
                    _ => None,
                };
                facts.boosted(Some(true));
                facts.target(spinner_first, boost.halted, boost.receiver);
            }
            None => facts.boosted(entered.then_some(false)),
        }
        facts.outcome()
    }
}
