// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classification of exits, their outcomes, and preempted critical sections.

pub(crate) mod ecs_class;
pub(crate) mod guest_audit;
pub(crate) mod outcome;
pub(crate) mod ple_run;
pub(crate) mod reason;
pub(crate) mod spin_places;
pub(crate) mod spin_samples;
pub(crate) mod wakeup;
