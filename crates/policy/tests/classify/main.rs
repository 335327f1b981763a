// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes of policy/classify.

mod critical_functions;
mod ecs_class;
mod guest_audit;
mod outcome;
mod ple_run;
mod reason;
mod spin_places;
mod spin_samples;
mod wakeup;
