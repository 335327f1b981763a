// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives `locks/` between the threads of this process ([`threads`]), and in a scripted world where every
//! interleaving can be had ([`script`], [`explore`]).

mod affinity;
pub mod baselines;
mod clock;
pub mod costs;
pub mod ecs;
mod error;
pub mod explore;
mod ffi;
mod findings;
mod graph;
pub mod group;
pub mod latency;
mod monitor;
mod neighbours;
#[cfg(test)]
mod parking;
mod plan;
pub mod points;
mod request;
mod schedule;
pub mod script;
mod summary;
pub mod table;
pub mod threads;
#[cfg(test)]
mod waiting;

pub use baselines::Contender;
pub use error::Error;
pub use ffi::{DriverOutcome, DriverValidation};
pub use plan::Axes;
pub use summary::{Cell, Figures, Sample, ThreadsReport};
