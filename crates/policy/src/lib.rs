// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of `policy/` for user space: the very C functions that BPF programs and the lab call, typed.
//!
//! Everything that may be unknown is an `Option`; `None` is never taken for a no.

mod apple;
mod candidate;
mod critical;
mod deboost;
mod ecs;
mod inefficiency;
mod lag_credit;
mod outcome;
mod pause_loop;
mod raw;
mod reason;
mod run;
mod wakeup;
mod window;

pub use apple::{Apple, AppleEpoch, AppleRule};
pub use candidate::{CandidateRule, Spinner, Verdict, Walk, YieldFacts, is_receiver, verdict};
pub use critical::{CountsSeen, PREEMPT_NEED_RESCHED, critical_function};
pub use deboost::{Deboost, DeboostPair};
pub use ecs::{
    ECS_EXTRA_NS, Ecs, EcsAccount, EcsClass, EcsCounters, eschd_spins, pcpu_overloaded, schd_spins,
};
pub use inefficiency::{
    EPOCH_EXITS, Epoch, PAUSE_LEAST_PS, window_is_honoured, window_is_quicker, window_unit_ps,
};
pub use lag_credit::{LAG_MARGIN_NS, LagLevel, lag_credit_forces};
pub use outcome::{Candidate, CandidateState, Outcome, OutcomeFacts, Where};
pub use pause_loop::{Pace, PauseHardware, PauseLoop, Spin};
pub use reason::{
    IpiEvidence, Reason, ReasonFacts, Symbol, Vector, linux_vector, may_wait_for_answers, symbol_of,
};
pub use run::{Run, RunExit, RunRule, RunShares};
pub use wakeup::{Wakeup, WakeupParts};
pub use window::{Control, DEFAULT_GAP_CYCLES, SpinBound, Vendor, WaitExit, WindowRule};

/// A fact that may be unknown, as `enum unspin_known`.
fn known(fact: Option<bool>) -> u32 {
    match fact {
        None => raw::UNSPIN_NOT_KNOWN,
        Some(false) => raw::UNSPIN_NO,
        Some(true) => raw::UNSPIN_YES,
    }
}

/// The other way round.
fn fact(known: u32) -> Option<bool> {
    match known {
        raw::UNSPIN_NO => Some(false),
        raw::UNSPIN_YES => Some(true),
        _ => None,
    }
}
