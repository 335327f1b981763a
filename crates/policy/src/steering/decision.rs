// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls the policies and converts their decisions; replays logged decisions.

use crate::{
    raw,
    steering::{
        DecisionRecord, Facts, Memory, OrderFacts, Policies, VcpuFacts,
        user_library::{Decide, OnSliceStart, UserPolicyNumber},
    },
};

/// A policy's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The policy has no opinion.
    Pass,
    /// The request is refused.
    Refuse,
    /// The candidate runs for the rest of the slice.
    Direct,
    /// The candidate runs for at most this many ns, then the lender continues.
    Lend(u32),
    /// The vCPU continues for at most this many ns.
    Grant(u32),
    /// The same, but its guest is not notified, and no policy polls it before the time has passed.
    Extend(u32),
    /// The vCPU leaves its CPU.
    GiveBack,
    /// The vCPU leaves its CPU, and the candidate is next unless it is too far ahead.
    YieldBuddy {
        /// The greatest distance at which the candidate is next, ns of virtual time.
        threshold_ns: u32,
        /// By how much the vCPU's own virtual time is raised first, ns.
        raise_ns: u32,
        /// By how much the candidate's is lowered first, ns.
        credit_ns: u32,
    },
}

impl Decision {
    /// Whether this is a loan for a lock, and not for an answer to an interrupt.
    pub fn is_lock_loan(self) -> bool {
        let raw = self.to_raw();
        // SAFETY: two numbers.
        unsafe { raw::unspin_is_lock_loan(raw.action, raw.budget_ns) }
    }

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

    /// To the C struct; without a rank.
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

    /// The guest of `facts.self_` makes the hypercall for help, and `facts.candidate` might be run. Returns with the decision a rank:
    /// the candidate with the highest is taken; 0: the candidate is not let run.
    pub fn on_help(self, facts: &Facts, memory: &mut Memory) -> (Decision, u32) {
        let raw = self.decide(raw::UNSPIN_ON_HELP, facts, memory);
        (Decision::from_raw(raw), raw.rank)
    }

    /// `facts.self_` has begun a slice of its own, and `facts.candidate`, of the same VM, waits:
    /// [`Decision::YieldBuddy`] calls the candidate to another CPU.
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

/// Whether the slice that begins is that of a vCPU which uses locks; `lock_ns`: when it was last seen to; `answer_slices`: those
/// left in which it waits for answers to interrupts (`policy/steering/slice.h`).
pub fn uses_locks(lock_ns: Option<u64>, now_ns: u64, answer_slices: u32) -> bool {
    // SAFETY: numbers.
    let uses = |lock_ns| unsafe { raw::unspin_uses_locks(lock_ns, now_ns, answer_slices) };
    lock_ns.is_some_and(|lock_ns: u64| uses(lock_ns.max(1)))
}

/// Those slices that are left as one of its own begins.
pub fn answer_slices_left(answer_slices: u32) -> u32 {
    // SAFETY: a function of a number.
    unsafe { raw::unspin_answer_slices_left(answer_slices) }
}

/// Whether somebody may wait for an answer of that vCPU to an interrupt (`policy/steering/answer.h`).
pub fn answer_may_be_awaited(candidate: &VcpuFacts) -> bool {
    // SAFETY: a live reference to a struct of integers, which the call does not keep.
    unsafe { raw::answer_may_be_awaited(candidate) }
}

/// Whether the slice of another VM's vCPU may be cut for a gang after it has run for `ran_ns`.
pub fn gang_cuts(ran_ns: u64) -> bool {
    // SAFETY: a function of a number.
    unsafe { raw::gang_cuts(ran_ns) }
}

/// Whether a yield buddy is followed: the candidate's virtual time is at most `threshold_ns` after that of the first
/// task.
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
    /// The record's bytes, as in memory.
    pub fn to_bytes(&self) -> [u8; size_of::<DecisionRecord>()] {
        // SAFETY: the same size; integers in structs of integers without a gap (policy/steering/policies.h asserts the sizes).
        unsafe { std::mem::transmute(*self) }
    }

    /// From the record's bytes; `None` for another number of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<DecisionRecord> {
        let bytes: [u8; size_of::<DecisionRecord>()] = bytes.try_into().ok()?;
        // SAFETY: the same size, and any bytes are a struct of integers.
        Some(unsafe {
            std::mem::transmute::<[u8; size_of::<DecisionRecord>()], DecisionRecord>(bytes)
        })
    }

    /// Whether a user policy was called too: then [`UserPolicySource::replay`] must replay the decision.
    pub fn asked_own(&self) -> bool {
        self.policies & raw::UNSPIN_POLICY_USER != 0
    }

    /// The logged decision.
    pub fn decided(&self) -> Decision {
        Decision::from_raw(self.decision)
    }

    /// Replays the decision from the record. Returns whether decision and memory are the same to the bit. Does not call
    /// a user policy.
    pub fn replays(&self) -> bool {
        let mut memory = self.before;
        let mut decision = raw::unspin_decision::default();
        // SAFETY: three live references to structs of integers; the call keeps none.
        let follows = unsafe { raw::policies_replay(self, &mut memory, &mut decision) };
        follows && decision == self.decision && memory == self.after
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Decision, Facts, Memory, OrderFacts, Policies, raw};
    use crate::steering::{Fact, UNSPIN_AGE_UNKNOWN, UNSPIN_AWAITED_BY_SOMEBODY, VcpuFacts};

    const UNKNOWN: Fact = Fact {
        value: 0,
        age_ns: UNSPIN_AGE_UNKNOWN,
    };
    const UNKNOWN_VCPU: VcpuFacts = VcpuFacts {
        critical: UNKNOWN,
        mode: UNKNOWN,
        descheduled: UNKNOWN,
        yielded: UNKNOWN,
        spun: UNKNOWN,
        borrows: UNKNOWN,
        near: UNKNOWN,
        sections: UNKNOWN,
        awaited: UNKNOWN,
        awaits: UNKNOWN,
    };

    fn fact() -> impl Strategy<Value = Fact> {
        let known = (0u32..3, 0u32..2_000_000);
        let known = known.prop_map(|(value, age_ns)| Fact { value, age_ns });
        prop_oneof![Just(UNKNOWN), known]
    }

    fn vcpu() -> impl Strategy<Value = VcpuFacts> {
        prop::array::uniform10(fact()).prop_map(|of| VcpuFacts {
            critical: of[0],
            mode: of[1],
            descheduled: of[2],
            yielded: of[3],
            spun: of[4],
            borrows: of[5],
            near: of[6],
            sections: of[7],
            awaited: of[8],
            awaits: of[9],
        })
    }

    fn facts() -> impl Strategy<Value = Facts> {
        let vtimes = prop::array::uniform4(0u64..10_000_000);
        let order = (vtimes, 0u32..9, 0u32..3, 0u32..3);
        let order = order.prop_map(|(vtimes, runnable, same_queue, same_group)| OrderFacts {
            self_vtime: vtimes[0],
            candidate_vtime: vtimes[1],
            average_vtime: vtimes[2],
            limit_vtime: vtimes[3],
            runnable,
            same_queue,
            same_group,
            unused: 0,
        });
        let slice_ns = prop_oneof![Just(1_400_000u32), Just(8_000_000)];
        let of = (vcpu(), vcpu(), slice_ns, 0u32..8_000_000, order);
        of.prop_map(|(self_, candidate, slice_ns, left_ns, order)| Facts {
            self_,
            candidate,
            slice_ns,
            slice_left_ns: left_ns.min(slice_ns),
            recent_ns: 1_000_000,
            threshold_ns: 2_000_000,
            order,
        })
    }

    fn on_yield(policies: u32, facts: &Facts) -> Decision {
        let mut memory = Memory::default();
        // SAFETY: two live references to structs of integers; the call keeps neither.
        let raw =
            unsafe { raw::policies_decide(raw::UNSPIN_ON_YIELD, policies, facts, &mut memory) };
        Decision::from_raw(raw)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// What the host leaves out where no policy reads it (ask(), bpf/scheduler/yield/ops_yield.bpf.h) decides nothing.
        #[test]
        fn facts_that_are_left_out_decide_nothing(
            facts in facts(),
            policies in 0u32..1 << raw::UNSPIN_POLICY_COUNT,
        ) {
            // SAFETY: constants.
            let (candidate, yielder, order) = unsafe {
                (
                    raw::unspin_policies_of_candidate(),
                    raw::unspin_policies_of_yielder(),
                    raw::unspin_policies_of_order(),
                )
            };
            let mut gathered = facts;
            if policies & candidate == 0 {
                gathered.candidate = VcpuFacts {
                    descheduled: facts.candidate.descheduled,
                    awaited: facts.candidate.awaited,
                    awaits: facts.candidate.awaits,
                    ..UNKNOWN_VCPU
                };
            }
            let named = Policies::of_numbers(policies, [0; 3], 0, 0);
            let reads = named.read_answers(&gathered.candidate);
            // What is known exactly is always there.
            if !reads && facts.candidate.awaited.value == UNSPIN_AWAITED_BY_SOMEBODY {
                gathered.candidate.awaited = UNKNOWN;
            }
            if policies & yielder == 0 {
                gathered.self_ = UNKNOWN_VCPU;
            }
            if policies & order == 0 {
                gathered.order = OrderFacts::UNKNOWN;
            }
            prop_assert_eq!(on_yield(policies, &gathered), on_yield(policies, &facts));
        }
    }
}
