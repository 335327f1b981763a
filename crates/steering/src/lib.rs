// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steering policies of `policy/` for user space: their names, and the very C functions that the host's BPF programs
//! call, so that a decision taken there can be taken again here.

mod candidates;
mod conduct;
mod duration;
mod new;
mod own;
mod own_error;
mod own_library;
mod own_work;
mod sources;
mod window;

use std::{ffi::CStr, fmt, str::FromStr};

use candidates::{CANDIDATES, IGNORE_VECTORS};
pub use conduct::Conduct;

pub use new::write_new_policy;
pub use own::{OwnSource, Tested, check_name};
pub use own_error::OwnError;
pub use own_library::OwnNumber;
pub use sources::SOURCES_HASH;
pub use unspin_policy::CandidateRule;
pub use window::{AppleNumbers, WindowPolicy};

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
    UNSPIN_AGE_MAX, UNSPIN_AGE_UNKNOWN, UNSPIN_BUDGET_NS, UNSPIN_DIRECT, UNSPIN_EXTEND,
    UNSPIN_FACT_KERNEL, UNSPIN_FACT_USER, UNSPIN_GIVE_BACK, UNSPIN_GRANT, UNSPIN_LEND, UNSPIN_NO,
    UNSPIN_ON_LOOK, UNSPIN_ON_SLICE_END, UNSPIN_ON_SPIN, UNSPIN_ON_YIELD, UNSPIN_PASS,
    UNSPIN_POLICY_CONTRACT, UNSPIN_REFUSE, UNSPIN_YES, unspin_decision_record as DecisionRecord,
    unspin_fact as Fact, unspin_facts as Facts, unspin_order_facts as OrderFacts,
    unspin_policy_memory as Memory, unspin_vcpu_facts as VcpuFacts,
};

/// Which policies are switched on, and their parameters; none of them is the policy `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    bits: u32,
    slice_ns: u32,
    recent_ns: u32,
    threshold_ns: u32,
    candidates: Option<CandidateRule>,
    ignore_vectors: bool,
    own: Option<OwnNumber>,
}

/// The policy that is a slice and nothing else (`policy/slice.h`): it is never asked.
const SLICE: &str = "slice";
/// The policy with a parameter: what is recent (`policy/helping.h`).
const HELPING: &str = "helping";
/// Policies whose hints may be too unfair (`policy/yield_hint.h`); they share one threshold.
const HINTS: [&str; 3] = ["debooster", "debooster-ancestor", "yield-hint"];

impl Policies {
    /// Every directed yield is refused.
    pub const NONE: Policies = Policies {
        bits: 0,
        slice_ns: 0,
        recent_ns: raw::UNSPIN_RECENT_NS,
        threshold_ns: raw::UNSPIN_THRESHOLD_NS,
        candidates: None,
        ignore_vectors: false,
        own: None,
    };

    /// The same and a policy of a user's own, whose functions are not in this library.
    pub const fn with_own(mut self) -> Policies {
        self.bits |= raw::UNSPIN_POLICY_OWN;
        self
    }

    /// The same and that policy of a user's own, which is asked before all of them.
    pub const fn with_loaded(mut self, own: OwnNumber) -> Policies {
        self.own = Some(own);
        self.with_own()
    }

    /// Whether a policy of a user's own is among them.
    pub const fn has_own(self) -> bool {
        self.bits & raw::UNSPIN_POLICY_OWN != 0
    }

    /// Whether a vCPU that begins a turn calls its siblings.
    pub const fn calls_siblings(self) -> bool {
        self.bits & raw::unspin_policy_gang != 0
    }

    /// The bits of `enum unspin_policy_bit`.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The slice of steered vCPUs, ns; 0: the kernel's own.
    pub const fn slice_ns(self) -> u32 {
        self.slice_ns
    }

    /// Up to what age something is recent to the policy `helping`, ns.
    pub const fn recent_ns(self) -> u32 {
        self.recent_ns
    }

    /// How much further a candidate may be before a hint to run it is too unfair (`yield-hint` and the debooster), ns.
    pub const fn threshold_ns(self) -> u32 {
        self.threshold_ns
    }

    /// Names of all policies that can be switched on, in the order in which they are asked; `slice` last.
    pub fn names() -> impl Iterator<Item = &'static str> {
        (0..raw::UNSPIN_POLICY_COUNT).map(name).chain([SLICE])
    }

    /// The same with one more, as in `loan` or `slice=500us`.
    fn with(mut self, word: &str) -> Result<Policies, String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if let Some(changed) = self.with_candidates(name, value) {
            return changed;
        }
        match (name, value) {
            (SLICE, None) => return Err("`slice` needs a time, as in slice=500us".to_owned()),
            (SLICE, Some(value)) => {
                let allowed = raw::UNSPIN_SLICE_MIN_NS..=raw::UNSPIN_SLICE_MAX_NS;
                self.slice_ns = duration::parse(word, value, allowed)?;
                return Ok(self);
            }
            (HELPING, Some(value)) => {
                self.recent_ns = duration::parse(word, value, 0..=raw::UNSPIN_RECENT_MAX_NS)?;
            }
            (name, Some(value)) if HINTS.contains(&name) => {
                let allowed = 0..=raw::UNSPIN_THRESHOLD_MAX_NS;
                self.threshold_ns = duration::parse(word, value, allowed)?;
            }
            (_, Some(_)) => {
                let hints = HINTS.join(", ");
                return Err(format!(
                    "`{word}`: only slice, helping, {hints} take a time"
                ));
            }
            (_, None) => {}
        }
        let bit = (0..raw::UNSPIN_POLICY_COUNT).find(|bit| self::name(*bit) == name);
        let bit = bit.ok_or_else(|| {
            let known = Policies::names().collect::<Vec<_>>().join(", ");
            format!("there is no policy `{word}`: none, or some of {known}, apart by commas")
        })?;
        self.bits |= 1 << bit;
        Ok(self)
    }
}

impl Default for Policies {
    /// [`Policies::NONE`].
    fn default() -> Policies {
        Policies::NONE
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

    /// Names apart by commas, some with a time as in `helping=1ms,slice=8ms`, or `none`.
    fn from_str(text: &str) -> Result<Policies, String> {
        if text == "none" {
            return Ok(Policies::NONE);
        }
        let policies = text.split(',').try_fold(Policies::NONE, Policies::with)?;
        policies.check_candidates()
    }
}

impl fmt::Display for Policies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |name, value_ns| format!("{name}={}", duration::format(value_ns));
        let own = self.has_own().then(|| "own".to_owned());
        let ours = (0..raw::UNSPIN_POLICY_COUNT)
            .filter(|bit| self.bits >> bit & 1 == 1)
            .map(|bit| match name(bit) {
                HELPING if self.recent_ns != raw::UNSPIN_RECENT_NS => with(HELPING, self.recent_ns),
                name if HINTS.contains(&name) && self.threshold_ns != raw::UNSPIN_THRESHOLD_NS => {
                    with(name, self.threshold_ns)
                }
                name => name.to_owned(),
            });
        let mut on: Vec<String> = own.into_iter().chain(ours).collect();
        if let Some(rule) = self.candidates {
            on.push(format!("{CANDIDATES}={}", rule.name()));
        }
        if self.ignore_vectors {
            on.push(IGNORE_VECTORS.to_owned());
        }
        if self.slice_ns != 0 {
            on.push(with(SLICE, self.slice_ns));
        }
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
    /// The same, but its guest is not told, and nobody looks before the time is up.
    Extend(u32),
    /// The vCPU leaves its CPU.
    GiveBack,
    /// The vCPU leaves its CPU, and the candidate is next unless that is too unfair.
    Hint {
        /// What is too unfair, ns of virtual time.
        threshold_ns: u32,
        /// How much the vCPU's own virtual time goes up first, ns.
        raise_ns: u32,
        /// How much the candidate's goes down first, ns.
        credit_ns: u32,
    },
}

impl Decision {
    fn from_raw(raw: raw::unspin_decision) -> Decision {
        match raw.action {
            raw::UNSPIN_REFUSE => Decision::Refuse,
            raw::UNSPIN_DIRECT => Decision::Direct,
            raw::UNSPIN_LEND => Decision::Lend(raw.budget_ns),
            raw::UNSPIN_GRANT => Decision::Grant(raw.budget_ns),
            raw::UNSPIN_EXTEND => Decision::Extend(raw.budget_ns),
            raw::UNSPIN_GIVE_BACK => Decision::GiveBack,
            raw::UNSPIN_HINT => Decision::Hint {
                threshold_ns: raw.budget_ns,
                raise_ns: raw.raise_ns,
                credit_ns: raw.credit_ns,
            },
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

    /// The guest of `facts.self_` asks for help, and `facts.candidate` might give it; beside the answer its rank: the
    /// highest is taken, 0 where nobody is let run.
    pub fn on_help(self, facts: &Facts, memory: &mut Memory) -> (Decision, u32) {
        let raw = self.decide(raw::UNSPIN_ON_HELP, facts, memory);
        (Decision::from_raw(raw), raw.rank)
    }

    /// `facts.self_` has begun a turn of its own, and `facts.candidate`, of its VM, waits: [`Decision::Hint`] calls it to
    /// another CPU.
    pub fn on_call(self, facts: &Facts, memory: &mut Memory) -> Decision {
        Decision::from_raw(self.decide(raw::UNSPIN_ON_CALL, facts, memory))
    }

    fn decide(self, event: u32, facts: &Facts, memory: &mut Memory) -> raw::unspin_decision {
        let own = self.own.and_then(OwnNumber::functions);
        let decide = own.map_or(raw::steering_decide as own_library::Decide, |own| {
            own.decide
        });
        // SAFETY: two live references to structs of integers; the call keeps neither.
        unsafe { decide(event, self.bits, facts, memory) }
    }

    /// `facts.self_` begins a turn of its own.
    pub fn on_turn(self, facts: &Facts, memory: &mut Memory) {
        let own = self.own.and_then(OwnNumber::functions);
        let on_turn = own.map_or(raw::steering_on_turn as own_library::OnTurn, |own| {
            own.on_turn
        });
        // SAFETY: as in `decide`.
        unsafe { on_turn(self.bits, facts, memory) }
    }
}

/// Whether the turn of another VM's vCPU may be cut for a gang that has run for so long.
pub fn gang_cuts(ran_ns: u64) -> bool {
    // SAFETY: a function of a number.
    unsafe { raw::steering_gang_cuts(ran_ns) }
}

/// Whether a hint is followed: the candidate's virtual time is at most so much after that of whoever would be next.
pub fn hint_is_followed(candidate_vtime: u64, first_vtime: u64, threshold_ns: u32) -> bool {
    // SAFETY: three numbers.
    unsafe { raw::steering_hint_is_followed(candidate_vtime, first_vtime, threshold_ns) }
}

impl OrderFacts {
    /// No queue, or none known.
    pub const UNKNOWN: OrderFacts = OrderFacts {
        self_vtime: 0,
        candidate_vtime: 0,
        average_vtime: 0,
        limit_vtime: 0,
        runnable: 0,
        same_queue: raw::UNSPIN_NOT_KNOWN,
        same_group: raw::UNSPIN_NOT_KNOWN,
        unused: 0,
    };
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
        let mut decision = raw::unspin_decision::default();
        // SAFETY: three live references to structs of integers; the call keeps none.
        let follows = unsafe { raw::steering_replay(self, &mut memory, &mut decision) };
        follows && decision == self.decision && memory == self.after
    }
}
