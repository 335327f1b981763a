// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steering policies of `policy/` for user space: their names, and the very C functions that the host's BPF programs
//! call, so that a decision taken there can be taken again here.

mod candidates;
mod decision;
mod duration;
mod guest_audit;
mod new;
mod policies;
mod sources;
mod user_error;
mod user_library;
mod user_policy;
mod user_work;
mod window;

pub use decision::{Decision, gang_cuts, yield_buddy_is_followed};
pub use guest_audit::GuestAudit;
pub use new::write_new_policy;
pub use policies::Policies;
pub use sources::SOURCES_HASH;
pub use unspin_policy::CandidateRule;
pub use user_error::UserPolicySourceError;
pub use user_library::UserPolicyNumber;
pub use user_policy::{Tested, UserPolicySource, check_name};
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
    UNSPIN_ON_POLL, UNSPIN_ON_SLICE_END, UNSPIN_ON_SPIN, UNSPIN_ON_YIELD, UNSPIN_PASS,
    UNSPIN_POLICY_CONTRACT, UNSPIN_REFUSE, UNSPIN_YES, unspin_decision_record as DecisionRecord,
    unspin_fact as Fact, unspin_facts as Facts, unspin_order_facts as OrderFacts,
    unspin_policy_memory as Memory, unspin_vcpu_facts as VcpuFacts,
};
