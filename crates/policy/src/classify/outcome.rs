// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of one pause-loop exit: `policy/classify/ple_outcome.h`.

use crate::{fact, known, raw};

/// The outcome of a pause-loop exit (VEE'21, section 3; ruling 28): the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// No other vCPU of the VM is descheduled and could be run.
    NoCandidate,
    /// None was boosted, and a receiver of the spinner's IPI was passed over because it was in user mode.
    LostOpportunity,
    /// None was boosted: all were passed over for another reason, or the yield failed.
    LostOther,
    /// A vCPU was boosted, and the spinner ran again before it.
    Mismatch,
    /// The boosted vCPU was halted, and the spinner had sent it no IPI.
    Overboost,
    /// A vCPU was boosted and ran.
    Success,
    /// A fact on which the outcome depends is not known.
    Unknown,
}

impl Outcome {
    /// All outcomes, in the order of the ruling.
    pub const ALL: [Outcome; raw::UNSPIN_PLE_OUTCOMES as usize] = [
        Outcome::NoCandidate,
        Outcome::LostOpportunity,
        Outcome::LostOther,
        Outcome::Mismatch,
        Outcome::Overboost,
        Outcome::Success,
        Outcome::Unknown,
    ];

    /// The ruling's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::NoCandidate => "no_candidate",
            Outcome::LostOpportunity => "lost_opportunity",
            Outcome::LostOther => "lost_other",
            Outcome::Mismatch => "mismatch",
            Outcome::Overboost => "overboost",
            Outcome::Success => "success",
            Outcome::Unknown => "unknown",
        }
    }
}

/// The state of another vCPU of the VM when KVM chose one to boost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateState {
    /// Not known.
    Unknown,
    /// On a pCPU.
    Running,
    /// Runnable: preempted, or it yielded.
    Preempted,
    /// Halted and woken, and has not run since.
    Woken,
    /// Asleep.
    Halted,
}

impl CandidateState {
    pub(crate) fn raw(self) -> u32 {
        match self {
            CandidateState::Unknown => raw::UNSPIN_CANDIDATE_UNKNOWN,
            CandidateState::Running => raw::UNSPIN_CANDIDATE_RUNNING,
            CandidateState::Preempted => raw::UNSPIN_CANDIDATE_PREEMPTED,
            CandidateState::Woken => raw::UNSPIN_CANDIDATE_WOKEN,
            CandidateState::Halted => raw::UNSPIN_CANDIDATE_HALTED,
        }
    }
}

/// A guest's privilege level, where known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// CPL 3.
    User,
    /// CPL 0 to 2.
    Kernel,
}

/// Another vCPU of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its state.
    pub state: CandidateState,
    /// Its mode when it left its pCPU.
    pub mode: Option<Where>,
    /// Whether the spinner's IPI went to it while it was off its pCPU, and it has not run since (ruling 32).
    pub receiver: Option<bool>,
    /// Whether `yield_to()` was called for it.
    pub tried: Option<bool>,
}

/// The facts about one exit. At first there are no other vCPUs, and none was boosted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeFacts(raw::unspin_ple_facts);

pub(crate) fn mode_number(mode: Option<Where>) -> u32 {
    match mode {
        None => raw::UNSPIN_MODE_UNKNOWN,
        Some(Where::User) => raw::UNSPIN_MODE_USER,
        Some(Where::Kernel) => raw::UNSPIN_MODE_KERNEL,
    }
}

impl Candidate {
    fn raw(self) -> raw::unspin_ple_candidate {
        raw::unspin_ple_candidate {
            state: self.state.raw(),
            mode: mode_number(self.mode),
            receiver: known(self.receiver),
            tried: known(self.tried),
        }
    }

    /// Whether it is halted, or was when it was woken.
    pub fn is_halted(self) -> Option<bool> {
        // SAFETY: reads a valid struct for the length of the call.
        fact(unsafe { raw::unspin_ple_is_halted(&self.raw()) })
    }
}

impl OutcomeFacts {
    /// Adds another vCPU, in any order. `spinner_mode`: the spinner's mode.
    pub fn add(&mut self, candidate: Candidate, spinner_mode: Option<Where>) {
        // SAFETY: both pointers are to valid structs, used for the length of the call only.
        unsafe {
            raw::unspin_ple_add_candidate(&mut self.0, &candidate.raw(), mode_number(spinner_mode));
        }
    }

    /// Says that a vCPU may have been missed: whether there was a candidate is then known only if there was one.
    pub fn others_unknown(&mut self) {
        self.add(
            Candidate {
                state: CandidateState::Unknown,
                mode: None,
                receiver: None,
                tried: None,
            },
            None,
        );
    }

    /// Says whether `yield_to()` returned more than 0.
    pub fn boosted(&mut self, boosted: Option<bool>) {
        self.0.boosted = known(boosted);
    }

    /// Says what is known of the boosted vCPU: whether the spinner ran again before it, whether it was halted, whether it
    /// is a receiver of the spinner's IPI ([`Candidate::receiver`]).
    pub fn target(
        &mut self,
        spinner_first: Option<bool>,
        halted: Option<bool>,
        receiver: Option<bool>,
    ) {
        self.0.spinner_first = known(spinner_first);
        self.0.target_halted = known(halted);
        self.0.target_receiver = known(receiver);
    }

    /// Whether some other vCPU was descheduled and could be woken.
    pub fn candidate(&self) -> Option<bool> {
        fact(self.0.candidate)
    }

    /// The outcome: known exactly when no unknown fact can change it.
    pub fn outcome(&self) -> Outcome {
        // SAFETY: reads a valid struct for the length of the call.
        match unsafe { raw::unspin_ple_outcome(&self.0) } {
            raw::UNSPIN_PLE_NO_CANDIDATE => Outcome::NoCandidate,
            raw::UNSPIN_PLE_LOST_OPPORTUNITY => Outcome::LostOpportunity,
            raw::UNSPIN_PLE_LOST_OTHER => Outcome::LostOther,
            raw::UNSPIN_PLE_MISMATCH => Outcome::Mismatch,
            raw::UNSPIN_PLE_OVERBOOST => Outcome::Overboost,
            raw::UNSPIN_PLE_SUCCESS => Outcome::Success,
            _ => Outcome::Unknown,
        }
    }
}
