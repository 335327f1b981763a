// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which vCPU a spinning vCPU yields to: `policy/steering/candidate.h`, `policy/steering/candidate_walk.h`.

use crate::classify::outcome::{CandidateState, Where, mode_number};
use crate::classify::reason::{Vector, vector_number};
use crate::{known, raw};

/// The rule by which the vCPU is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateRule {
    /// KVM up to 5.2.
    Kvm5_2,
    /// KVM from 5.3 to 5.12, on which VEE'21 builds.
    Kvm5_3,
    /// KVM of today (7.2).
    Kvm7_2,
    /// Strict boost (VEE'21).
    Strict,
    /// Its variant that also boosts vCPUs preempted in user mode.
    Usermode,
    /// Its variant "Overboost": does not boost halted vCPUs that wait for another vCPU's IPI.
    AvoidOverboost,
    /// The upstream proposal of June 2026.
    Proposed2026,
}

impl CandidateRule {
    /// All rules, in the order of the header.
    pub const ALL: [CandidateRule; raw::UNSPIN_CANDIDATE_RULES as usize] = [
        CandidateRule::Kvm5_2,
        CandidateRule::Kvm5_3,
        CandidateRule::Kvm7_2,
        CandidateRule::Strict,
        CandidateRule::Usermode,
        CandidateRule::AvoidOverboost,
        CandidateRule::Proposed2026,
    ];

    /// The name on command lines and in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            CandidateRule::Kvm5_2 => "kvm-5.2",
            CandidateRule::Kvm5_3 => "kvm-5.3",
            CandidateRule::Kvm7_2 => "kvm-7.2",
            CandidateRule::Strict => "strict",
            CandidateRule::Usermode => "usermode",
            CandidateRule::AvoidOverboost => "avoid-overboost",
            CandidateRule::Proposed2026 => "proposed-2026",
        }
    }

    /// The rule of this name.
    pub fn from_name(name: &str) -> Option<CandidateRule> {
        CandidateRule::ALL
            .into_iter()
            .find(|rule| rule.name() == name)
    }

    /// The rule with this number in the C enum.
    pub fn from_number(number: u32) -> Option<CandidateRule> {
        CandidateRule::ALL
            .into_iter()
            .find(|rule| rule.raw() == number)
    }

    /// Its number in the C enum.
    pub fn number(self) -> u32 {
        self.raw()
    }

    fn raw(self) -> u32 {
        match self {
            CandidateRule::Kvm5_2 => raw::UNSPIN_CANDIDATES_KVM_5_2,
            CandidateRule::Kvm5_3 => raw::UNSPIN_CANDIDATES_KVM_5_3,
            CandidateRule::Kvm7_2 => raw::UNSPIN_CANDIDATES_KVM_7_2,
            CandidateRule::Strict => raw::UNSPIN_CANDIDATES_STRICT,
            CandidateRule::Usermode => raw::UNSPIN_CANDIDATES_USERMODE,
            CandidateRule::AvoidOverboost => raw::UNSPIN_CANDIDATES_AVOID_OVERBOOST,
            CandidateRule::Proposed2026 => raw::UNSPIN_CANDIDATES_PROPOSED_2026,
        }
    }
}

/// The vCPU that spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spinner(raw::unspin_spinner);

impl Spinner {
    /// A spinner that exited in this mode: no options, first round, no outstanding IPI.
    pub fn new(rule: CandidateRule, mode: Option<Where>) -> Self {
        Spinner(raw::unspin_spinner {
            rule: rule.raw(),
            options: 0,
            mode: mode_number(mode),
            awaits: raw::UNSPIN_NO,
            round: 1,
        })
    }

    /// vCPUs that were sent only a reschedule IPI do not count as receivers (VEE'21's future work).
    pub fn ignoring_reschedules(mut self) -> Self {
        self.0.options |= raw::UNSPIN_CANDIDATES_IGNORE_RESCHEDULE;
        self
    }

    /// Strict boost in its narrow reading; `awaits`: an IPI of the spinner is outstanding.
    pub fn receivers_only(mut self, awaits: Option<bool>) -> Self {
        self.0.options |= raw::UNSPIN_CANDIDATES_RECEIVERS_ONLY;
        self.0.awaits = known(awaits);
        self
    }

    /// In the second round of the proposal of June 2026.
    pub fn second_round(mut self) -> Self {
        self.0.round = 2;
        self
    }
}

/// Another vCPU of the spinner's VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YieldFacts {
    /// Its state.
    pub state: CandidateState,
    /// Its mode when it left its pCPU.
    pub mode: Option<Where>,
    /// Whether an event is pending that makes it runnable.
    pub pending: Option<bool>,
    /// Whether an interrupt is pending in the hardware's virtual APIC; `Some(false)` without one.
    pub posted: Option<bool>,
    /// Whether it is a lock waiter: it left its pCPU in a pause-loop exit.
    pub spins: bool,
    /// Its mark as a lock waiter that was passed over.
    pub eligible: bool,
    /// Whether the spinner's IPI went to it while it was off its pCPU, and it has not run since (ruling 32).
    pub receiver: Option<bool>,
    /// What that IPI requests.
    pub vector: Vector,
    /// Its mark for this spinner: passed over while halted, and it has not run since.
    pub passed: bool,
    /// Time since the spinner's last IPI to it, ns.
    pub ipi_age_ns: Option<u32>,
}

impl YieldFacts {
    /// A vCPU in this state and mode, without pending events, marks or IPIs.
    pub fn new(state: CandidateState, mode: Option<Where>) -> Self {
        YieldFacts {
            state,
            mode,
            pending: Some(state == CandidateState::Woken),
            posted: Some(false),
            spins: false,
            eligible: false,
            receiver: Some(false),
            vector: Vector::NotKnown,
            passed: false,
            ipi_age_ns: None,
        }
    }

    fn raw(&self) -> raw::unspin_yield_facts {
        raw::unspin_yield_facts {
            state: self.state.raw(),
            mode: mode_number(self.mode),
            pending: known(self.pending),
            posted: known(self.posted),
            spins: u32::from(self.spins),
            eligible: u32::from(self.eligible),
            receiver: known(self.receiver),
            vector: vector_number(self.vector),
            passed: u32::from(self.passed),
            ipi_age_ns: self.ipi_age_ns.unwrap_or(raw::UNSPIN_AGE_UNKNOWN),
        }
    }
}

/// The decision about one candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether `yield_to()` is called for it.
    pub take: bool,
    /// Whether to invert [`YieldFacts::eligible`].
    pub toggle: bool,
    /// Whether to set [`YieldFacts::passed`] for this spinner until the candidate runs.
    pub mark: bool,
}

/// The decision about one candidate.
pub fn verdict(spinner: &Spinner, candidate: &YieldFacts) -> Verdict {
    // SAFETY: reads valid structs for the length of the call.
    let bits = unsafe { raw::unspin_candidate_verdict(&spinner.0, &candidate.raw()) };
    Verdict {
        take: bits & raw::UNSPIN_CANDIDATE_TAKE != 0,
        toggle: bits & raw::UNSPIN_CANDIDATE_TOGGLE != 0,
        mark: bits & raw::UNSPIN_CANDIDATE_MARK != 0,
    }
}

/// Whether the spinner has sent it an IPI that counts, and it has not run since.
pub fn is_receiver(spinner: &Spinner, candidate: &YieldFacts) -> bool {
    // SAFETY: reads valid structs for the length of the call.
    unsafe { raw::unspin_is_receiver(&spinner.0, &candidate.raw()) }
}

/// The walk over a VM's vCPUs in one pause-loop exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk(raw::unspin_walk);

impl Walk {
    /// Starts at the vCPU after `last_boosted`. `own` (the spinner) and `last_boosted` are below `vcpus`.
    pub fn new(rule: CandidateRule, own: u32, last_boosted: u32, vcpus: u32) -> Self {
        let mut walk = Walk(raw::unspin_walk::default());
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe {
            raw::unspin_walk_begin(&mut walk.0, rule.raw(), own, last_boosted, vcpus);
        }
        walk
    }

    /// The next vCPU to consider; `None`: the walk is over.
    pub fn next_vcpu(&mut self) -> Option<u32> {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        let vcpu = unsafe { raw::unspin_walk_next(&mut self.0) };
        (vcpu != raw::UNSPIN_WALK_NOBODY).then_some(vcpu)
    }

    /// The result of `yield_to()` for the vCPU that [`Walk::next_vcpu`] returned: above 0 done, 0 refused, below 0
    /// failed.
    pub fn tried(&mut self, vcpu: u32, result: i32) {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_walk_tried(&mut self.0, vcpu, result) }
    }

    /// The vCPU that was boosted: from now on the VM's `last_boosted`.
    pub fn boosted(&self) -> Option<u32> {
        (self.0.boosted != raw::UNSPIN_WALK_NOBODY).then_some(self.0.boosted)
    }
}
