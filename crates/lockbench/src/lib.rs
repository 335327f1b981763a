// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives `locks/` between the threads of this process ([`threads`]), beside the locks of other libraries ([`baselines`]), and
//! times what they rest on ([`costs`]).

mod affinity;
pub mod baselines;
mod clock;
pub mod costs;
pub mod ecs;
mod error;
mod ffi;
pub mod group;
pub mod latency;
mod neighbours;
#[cfg(test)]
mod parking;
mod plan;
pub mod points;
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
