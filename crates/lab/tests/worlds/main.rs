// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole worlds: conservation of time, determinism, loans, interrupts, limits.

mod auto;
mod baselines;
mod changing_load;
#[path = "../common/mod.rs"]
mod common;
mod conservation;
mod determinism;
mod from_scenario;
mod host_noise;
mod loans_and_interrupts;
mod lock_orders;
mod lockstep;
mod no_floats;
mod samples;
mod spin_count;
mod stuck;
