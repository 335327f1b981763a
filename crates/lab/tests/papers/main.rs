// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the papers measured, in the lab: directions and sizes of their effects.

mod apple;
#[path = "../common/mod.rs"]
mod common;
mod debooster;
mod ecs;
mod friebel;
mod preemptable_ticket;
mod preemptable_ticket_fairness;
