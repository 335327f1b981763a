// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steering policies, case by case.

mod baselines;
mod buddy_fairness;
mod candidates;
#[path = "../common/mod.rs"]
mod common;
mod ecs;
mod helping;
mod policies;
mod yield_buddy;
