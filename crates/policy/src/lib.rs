// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of `policy/` for user space: the same C functions that BPF programs and the lab call, with Rust types.
//!
//! A fact that may be unknown is an `Option`; `None` is never taken for no.

pub mod auto;
mod candidate;
mod classify;
pub mod mechanics;
mod model;
mod raw;
pub mod steering;
pub mod user_policy;

pub use candidate::{CandidateRule, Spinner, Verdict, Walk, YieldFacts, is_receiver, verdict};
pub use classify::ecs_class::{CountsSeen, PREEMPT_NEED_RESCHED, critical_function};
pub use classify::ecs_class::{
    ECS_EXTRA_NS, Ecs, EcsAccount, EcsClass, EcsCounters, eschd_spins, pcpu_overloaded, schd_spins,
};
pub use classify::guest_audit::GuestAudit;
pub use classify::outcome::{Candidate, CandidateState, Outcome, OutcomeFacts, Where};
pub use classify::ple_run::{Run, RunExit, RunRule, RunShares};
pub use classify::reason::{
    IpiEvidence, Reason, ReasonFacts, Symbol, Vector, linux_vector, may_wait_for_answers, symbol_of,
};
pub use classify::spin_places::{SPIN_PLACE_NS, SPIN_PLACES, SpinPlaces};
pub use classify::spin_samples::SpinSamples;
pub use classify::wakeup::{Wakeup, WakeupParts};
pub use model::apple::{Apple, AppleEpoch, AppleRule};
pub use model::deboost::{Deboost, DeboostPair};
pub use model::inefficiency::{
    EPOCH_EXITS, Epoch, PAUSE_LEAST_PS, window_is_honoured, window_is_quicker, window_unit_ps,
};
pub use model::lag_credit::{LAG_MARGIN_NS, LagLevel, lag_credit_forces};
pub use model::pause_loop::{Control, DEFAULT_GAP_CYCLES, SpinBound, Vendor, WaitExit, WindowRule};
pub use model::pause_loop::{Pace, PauseHardware, PauseLoop, Spin};

/// A fact that may be unknown, as `enum unspin_known`.
fn known(fact: Option<bool>) -> u32 {
    match fact {
        None => raw::UNSPIN_NOT_KNOWN,
        Some(false) => raw::UNSPIN_NO,
        Some(true) => raw::UNSPIN_YES,
    }
}

/// From `enum unspin_known`.
fn fact(known: u32) -> Option<bool> {
    match known {
        raw::UNSPIN_NO => Some(false),
        raw::UNSPIN_YES => Some(true),
        _ => None,
    }
}
