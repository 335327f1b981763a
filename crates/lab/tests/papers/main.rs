// SPDX-License-Identifier: MIT OR Apache-2.0
//! The papers' measurements in the lab: direction and size of the effects.

mod apple;
#[path = "../common/mod.rs"]
mod common;
mod debooster;
mod ecs;
mod friebel;
mod preemptable_ticket;
mod preemptable_ticket_fairness;
