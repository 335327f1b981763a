// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steering policies of `policy/steering` for user space: their names, and the same C functions that the host's BPF
//! programs call, so that a decision made there can be replayed here.

mod decision;
mod decision_file;
mod policies;
mod replay;
mod user_library;
mod windows;

pub use decision::{
    Decision, answer_may_be_awaited, answer_slices_left, gang_cuts, uses_locks,
    yield_buddy_is_followed,
};
pub use decision_file::{DecisionFile, DecisionFileError, read_decisions};
pub use policies::{Policies, REFUSE_YIELDS, format_time, parse_time, renamed};
pub use replay::{ReplayError, Replayed, replay_file};
pub use user_library::{UserPolicyNumber, look_again};
pub use windows::{AppleNumbers, WindowPolicy};

pub use crate::raw::{
    UNSPIN_AGE_MAX, UNSPIN_AGE_UNKNOWN, UNSPIN_ANSWER_NS, UNSPIN_ANSWER_SLICES,
    UNSPIN_AWAITED_BY_SELF, UNSPIN_AWAITED_BY_SOMEBODY, UNSPIN_AWAITS_NOW, UNSPIN_BUDGET_NS,
    UNSPIN_DIRECT, UNSPIN_EXTEND, UNSPIN_FACT_KERNEL, UNSPIN_FACT_USER, UNSPIN_GIVE_BACK,
    UNSPIN_GRANT, UNSPIN_LEND, UNSPIN_NO, UNSPIN_ON_POLL, UNSPIN_ON_SLICE_END, UNSPIN_ON_SPIN,
    UNSPIN_ON_YIELD, UNSPIN_PASS, UNSPIN_POLICY_CONTRACT, UNSPIN_REFUSE, UNSPIN_YES,
    unspin_decision_record as DecisionRecord, unspin_fact as Fact, unspin_facts as Facts,
    unspin_order_facts as OrderFacts, unspin_policy_memory as Memory,
    unspin_vcpu_facts as VcpuFacts,
};
