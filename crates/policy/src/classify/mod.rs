// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes: what an exit was for, what became of it, which section was preempted.

pub(crate) mod ecs_class;
pub(crate) mod guest_audit;
pub(crate) mod outcome;
pub(crate) mod ple_run;
pub(crate) mod reason;
pub(crate) mod wakeup;
