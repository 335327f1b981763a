// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: a deterministic model of a host, its scheduler, its hypervisor and its guests, that runs the policies of
//! `policy/` and the locks of `locks/`.

pub mod costs;
pub mod engine;
mod guest;
pub mod happening;
pub mod ids;
mod lab_error;
mod laboratory;
mod outcome;
pub mod random;
pub mod scheduler;
pub mod topology;
mod world;

pub use lab_error::LabError;
pub use laboratory::{DEFAULT_CPUS, DEFAULT_SCHEDULER, Laboratory};
pub use outcome::{Counts, Outcome, VcpuOutcome, run};
pub use world::{
    BuildError, LabHost, Paravirtual, RunError, SpinTurns, SteeringModel, TaskTimes,
    VcpuStatistics, World,
};
