// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vocabulary for what runs: the lab, the testbed, real hosts and threads all take a [`Scenario`].
//!
//! A scenario is written in TOML and read strictly ([`Scenario::load`], [`Scenario::parse`]): a key that nobody
//! knows, a number without its unit or a value that cannot be is refused with file, line, column and what is
//! allowed. [`Scenario::to_toml`] prints it back in one canonical form, which [`Scenario::hash`] names.

mod distribution;
mod error;
mod exponential;
mod lab;
pub mod limits;
mod model;
mod overrides;
mod parse;
mod parse_lab;
mod parse_vm;
mod print;
mod quantity;
mod renamed;
mod schema;
mod section;

pub use error::ScenarioError;
pub use lab::{LabEcs, LabGroups, LabSettings, LabTopology, LabVendor};
pub use model::{
    Distribution, EcsAblation, Host, Length, LockSharing, PvPageMemory, Scenario, Shape, Vm,
    WorkUnit, Workload,
};
pub use overrides::{OverrideError, Overrides};
pub use quantity::{format_duration, parse_duration};
pub use schema::json_schema;
