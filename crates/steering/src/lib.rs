// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steering policies of `policy/` for user space: their names, and the very C functions that the host's BPF programs
//! call, so that a decision taken there can be taken again here.

mod new;
mod own;
mod own_error;
mod own_work;
mod sources;

use std::{ffi::CStr, fmt, str::FromStr};

pub use new::write_new_policy;
pub use own::{OwnSource, Tested, check_name};
pub use own_error::OwnError;
pub use sources::SOURCES_HASH;

#[allow(
    non_upper_case_globals,
    non_camel_case_types,
    missing_docs,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
mod raw {
    include!(concat!(env!("OUT_DIR"), "/steering.rs"));
}

pub use raw::{
    UNSPIN_AGE_MAX, UNSPIN_AGE_UNKNOWN, UNSPIN_BUDGET_NS, UNSPIN_DIRECT, UNSPIN_FACT_KERNEL,
    UNSPIN_FACT_USER, UNSPIN_GIVE_BACK, UNSPIN_GRANT, UNSPIN_LEND, UNSPIN_ON_LOOK,
    UNSPIN_ON_SLICE_END, UNSPIN_ON_YIELD, UNSPIN_PASS, UNSPIN_POLICY_CONTRACT, UNSPIN_REFUSE,
    unspin_decision_record as DecisionRecord, unspin_fact as Fact, unspin_facts as Facts,
    unspin_policy_memory as Memory, unspin_vcpu_facts as VcpuFacts,
};

/// Which policies are switched on, one bit each; none of them is the policy `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policies(u32);

impl Policies {
    /// Every directed yield is refused.
    pub const NONE: Policies = Policies(0);

    /// The same and a policy of a user's own, whose functions are not in this library.
    pub const fn with_own(self) -> Policies {
        Policies(self.0 | raw::UNSPIN_POLICY_OWN)
    }

    /// Whether a policy of a user's own is among them.
    pub const fn has_own(self) -> bool {
        self.0 & raw::UNSPIN_POLICY_OWN != 0
    }

    /// The bits of `enum unspin_policy_bit`.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Names of all policies that can be switched on, in the order in which they are asked.
    pub fn names() -> impl Iterator<Item = &'static str> {
        (0..raw::UNSPIN_POLICY_COUNT).map(name)
    }
}

fn name(bit: u32) -> &'static str {
    // SAFETY: the array has UNSPIN_POLICY_COUNT constant C strings of ASCII, and callers stay below that.
    unsafe { CStr::from_ptr(raw::steering_names[bit as usize]) }
        .to_str()
        .unwrap_or("?")
}

impl FromStr for Policies {
    type Err = String;

    /// Names apart by commas, or `none`.
    fn from_str(text: &str) -> Result<Policies, String> {
        if text == "none" {
            return Ok(Policies::NONE);
        }
        text.split(',').try_fold(Policies::NONE, |set, word| {
            let known = || Policies::names().collect::<Vec<_>>().join(", ");
            let bit = Policies::names().position(|name| name == word);
            let bit = bit.ok_or_else(|| {
                format!(
                    "there is no policy `{word}`: none, or some of {}, apart by commas",
                    known()
                )
            })?;
            Ok(Policies(set.0 | 1 << bit))
        })
    }
}

impl fmt::Display for Policies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = (0..raw::UNSPIN_POLICY_COUNT).filter(|bit| self.0 >> bit & 1 == 1);
        let own = self.has_own().then_some("own");
        let on: Vec<&str> = own.into_iter().chain(ours.map(name)).collect();
        out.write_str(if on.is_empty() { "none" } else { "" })?;
        out.write_str(&on.join(","))
    }
}

/// What a policy answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No opinion.
    Pass,
    /// Nothing is done.
    Refuse,
    /// The candidate runs the rest of the slice.
    Direct,
    /// The same for so many nanoseconds at most, then the lender goes on.
    Lend(u32),
    /// The vCPU goes on for so many nanoseconds at most.
    Grant(u32),
    /// The vCPU leaves its CPU.
    GiveBack,
}

impl Decision {
    fn from_raw(raw: raw::unspin_decision) -> Decision {
        match raw.action {
            raw::UNSPIN_REFUSE => Decision::Refuse,
            raw::UNSPIN_DIRECT => Decision::Direct,
            raw::UNSPIN_LEND => Decision::Lend(raw.budget_ns),
            raw::UNSPIN_GRANT => Decision::Grant(raw.budget_ns),
            raw::UNSPIN_GIVE_BACK => Decision::GiveBack,
            _ => Decision::Pass,
        }
    }
}

impl Policies {
    /// `facts.self_` spins, and KVM proposes `facts.candidate`. Never [`Decision::Pass`].
    pub fn on_yield(self, facts: &Facts, memory: &mut Memory) -> Decision {
        Decision::from_raw(self.decide(raw::UNSPIN_ON_YIELD, facts, memory))
    }

    /// The slice of `facts.self_` is used up at a tick.
    pub fn on_slice_end(self, facts: &Facts, memory: &mut Memory) -> Decision {
        Decision::from_raw(self.decide(raw::UNSPIN_ON_SLICE_END, facts, memory))
    }

    /// `facts.self_` runs on a loan or a grant.
    pub fn on_look(self, facts: &Facts, memory: &mut Memory) -> Decision {
        Decision::from_raw(self.decide(raw::UNSPIN_ON_LOOK, facts, memory))
    }

    fn decide(self, event: u32, facts: &Facts, memory: &mut Memory) -> raw::unspin_decision {
        // SAFETY: two live references to structs of integers; the call keeps neither.
        unsafe { raw::steering_decide(event, self.0, facts, memory) }
    }

    /// `facts.self_` begins a turn of its own.
    pub fn on_turn(self, facts: &Facts, memory: &mut Memory) {
        // SAFETY: as in `decide`.
        unsafe { raw::steering_on_turn(self.0, facts, memory) }
    }
}

impl DecisionRecord {
    /// As it lies in memory.
    pub fn to_bytes(&self) -> [u8; size_of::<DecisionRecord>()] {
        // SAFETY: the same size; integers in structs of integers without a gap (policy/steering.h asserts the sizes).
        unsafe { std::mem::transmute(*self) }
    }

    /// The other way round; `None` for another number of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<DecisionRecord> {
        let bytes: [u8; size_of::<DecisionRecord>()] = bytes.try_into().ok()?;
        // SAFETY: the same size, and any bytes are a struct of integers.
        Some(unsafe {
            std::mem::transmute::<[u8; size_of::<DecisionRecord>()], DecisionRecord>(bytes)
        })
    }

    /// Whether a policy of a user's own was asked, too: [`OwnSource::replay`] takes such a decision again.
    pub fn asked_own(&self) -> bool {
        self.policies & raw::UNSPIN_POLICY_OWN != 0
    }

    /// What was decided.
    pub fn decided(&self) -> Decision {
        Decision::from_raw(self.decision)
    }

    /// Takes the decision again, here, from what the record holds: whether answer and memory are the same to the bit.
    /// Without the user's own policy, if there was one.
    pub fn replays(&self) -> bool {
        let mut memory = self.before;
        let decision = Policies(self.policies).decide(self.event, &self.facts, &mut memory);
        decision == self.decision && memory == self.after
    }
}
