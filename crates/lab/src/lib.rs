// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: a deterministic model of a host, its scheduler, its hypervisor and its guests, which runs the policies of
//! `policy/` and the locks of `locks/`.

pub mod change;
pub mod costs;
pub mod engine;
pub mod from_recording;
mod from_scenario;
mod guest;
pub mod host_events;
pub mod host_noise;
pub mod ids;
pub mod observers;
mod outcome;
pub mod perfetto;
pub mod pool;
pub mod random;
pub mod recording;
pub mod scheduler;
pub mod together;
pub mod topology;
pub mod trace_event;
mod world;

pub use from_scenario::LabError;
pub use from_scenario::{DEFAULT_CPUS, DEFAULT_SCHEDULER, Lab};
pub use outcome::{Counts, Outcome, VcpuOutcome, run};
pub use world::{
    BuildError, LabHost, Paravirtual, RunError, SpinCount, SteeringModel, TaskTimes,
    VcpuStatistics, World,
};
