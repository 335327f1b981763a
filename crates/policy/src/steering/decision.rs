// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies asked, and what they answer; logged answers taken again.

use crate::{
    raw,
    steering::{
        DecisionRecord, Facts, Memory, OrderFacts, Policies,
        user_library::{Decide, OnSliceStart, UserPolicyNumber},
    },
};

/// What a policy answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No opinion.
    Pass,
    /// Nothing is done.
    Refuse,
    /// The candidate runs the rest of the slice.
    Direct,
    /// The same for so many nanoseconds at most, then the lender continues.
    Lend(u32),
    /// The vCPU continues for so many nanoseconds at most.
    Grant(u32),
    /// The same, but its guest is not notified, and no policy polls it before the time is up.
    Extend(u32),
    /// The vCPU leaves its CPU.
    GiveBack,
    /// The vCPU leaves its CPU, and the candidate is next unless that is too unfair.
    YieldBuddy {
        /// What is too unfair, ns of virtual time.
        threshold_ns: u32,
        /// How much the vCPU's own virtual time goes up first, ns.
        raise_ns: u32,
        /// How much the candidate's goes down first, ns.
        credit_ns: u32,
    },
}

impl Decision {
    pub(crate) fn from_raw(raw: raw::unspin_decision) -> Decision {
        match raw.action {
            raw::UNSPIN_REFUSE => Decision::Refuse,
            raw::UNSPIN_DIRECT => Decision::Direct,
            raw::UNSPIN_LEND => Decision::Lend(raw.budget_ns),
            raw::UNSPIN_GRANT => Decision::Grant(raw.budget_ns),
            raw::UNSPIN_EXTEND => Decision::Extend(raw.budget_ns),
            raw::UNSPIN_GIVE_BACK => Decision::GiveBack,
            raw::UNSPIN_YIELD_BUDDY => Decision::YieldBuddy {
                threshold_ns: raw.budget_ns,
                raise_ns: raw.raise_ns,
                credit_ns: raw.credit_ns,
            },
            _ => Decision::Pass,
        }
    }

    /// The other way round; without a rank.
    pub(crate) fn to_raw(self) -> raw::unspin_decision {
        let (action, budget_ns) = match self {
            Decision::Pass => (raw::UNSPIN_PASS, 0),
            Decision::Refuse => (raw::UNSPIN_REFUSE, 0),
            Decision::Direct => (raw::UNSPIN_DIRECT, 0),
            Decision::Lend(budget_ns) => (raw::UNSPIN_LEND, budget_ns),
            Decision::Grant(budget_ns) => (raw::UNSPIN_GRANT, budget_ns),
            Decision::Extend(budget_ns) => (raw::UNSPIN_EXTEND, budget_ns),
            Decision::GiveBack => (raw::UNSPIN_GIVE_BACK, 0),
            Decision::YieldBuddy { threshold_ns, .. } => (raw::UNSPIN_YIELD_BUDDY, threshold_ns),
        };
        let mut raw = raw::unspin_decision {
            action,
            budget_ns,
            ..Default::default()
        };
        if let Decision::YieldBuddy {
            raise_ns,
            credit_ns,
            ..
        } = self
        {
            (raw.raise_ns, raw.credit_ns) = (raise_ns, credit_ns);
        }
        raw
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
    pub fn on_poll(self, facts: &Facts, memory: &mut Memory) -> Decision {
        Decision::from_raw(self.decide(raw::UNSPIN_ON_POLL, facts, memory))
    }

    /// The guest of `facts.self_` asks for help, and `facts.candidate` might give it; beside the answer its rank: the
    /// highest is taken, 0 where nobody is let run.
    pub fn on_help(self, facts: &Facts, memory: &mut Memory) -> (Decision, u32) {
        let raw = self.decide(raw::UNSPIN_ON_HELP, facts, memory);
        (Decision::from_raw(raw), raw.rank)
    }

    /// `facts.self_` has begun a slice of its own, and `facts.candidate`, of its VM, waits: [`Decision::YieldBuddy`] calls it to
    /// another CPU.
    pub fn on_call(self, facts: &Facts, memory: &mut Memory) -> Decision {
        Decision::from_raw(self.decide(raw::UNSPIN_ON_CALL, facts, memory))
    }

    fn decide(self, event: u32, facts: &Facts, memory: &mut Memory) -> raw::unspin_decision {
        let own = self.own.and_then(UserPolicyNumber::functions);
        let decide = own.map_or(raw::policies_decide as Decide, |own| own.decide);
        // SAFETY: two live references to structs of integers; the call keeps neither.
        unsafe { decide(event, self.bits, facts, memory) }
    }

    /// `facts.self_` begins a slice of its own.
    pub fn on_slice_start(self, facts: &Facts, memory: &mut Memory) {
        let own = self.own.and_then(UserPolicyNumber::functions);
        let on_slice_start = own.map_or(raw::policies_on_slice_start as OnSliceStart, |own| {
            own.on_slice_start
        });
        // SAFETY: as in `decide`.
        unsafe { on_slice_start(self.bits, facts, memory) }
    }
}

/// Whether the slice of another VM's vCPU may be cut for a gang that has run for so long.
pub fn gang_cuts(ran_ns: u64) -> bool {
    // SAFETY: a function of a number.
    unsafe { raw::gang_cuts(ran_ns) }
}

/// Whether a yield buddy is followed: the candidate's virtual time is at most so much after that of whoever would be next.
pub fn yield_buddy_is_followed(candidate_vtime: u64, first_vtime: u64, threshold_ns: u32) -> bool {
    // SAFETY: three numbers.
    unsafe { raw::yield_buddy_is_followed(candidate_vtime, first_vtime, threshold_ns) }
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
        // SAFETY: the same size; integers in structs of integers without a gap (policy/steering/policies.h asserts the sizes).
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

    /// Whether a user policy was asked, too: [`UserPolicySource::replay`] takes such a decision again.
    pub fn asked_own(&self) -> bool {
        self.policies & raw::UNSPIN_POLICY_USER != 0
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
        let follows = unsafe { raw::policies_replay(self, &mut memory, &mut decision) };
        follows && decision == self.decision && memory == self.after
    }
}
