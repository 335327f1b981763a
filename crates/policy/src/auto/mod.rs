// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy `auto`: useful time, trials, and the choice of each VM (`policy/auto/`).

mod controller;
mod step;
mod trial;
mod useful_time;

pub use controller::{
    AUTO_EPOCH_NS, AUTO_SETS, AUTO_SETTLE_NS, Auto, AutoEpoch, AutoReason, AutoSet,
};
pub use step::{AUTO, AutoStep, auto_seed};
pub use trial::{TRIAL_PAIRS, Trial, TrialInterval, TrialVerdict};
pub use useful_time::{SpinMeter, Stretch, StretchEnd, UsefulTime};
